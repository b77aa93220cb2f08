"""What this suite had to decide because the paper, as far as we could read it, does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.reporting.text import listing

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


@dataclass(frozen=True)
class Choice:
    """One decision of ours.

    Attributes:
        what: what the paper leaves open.
        ours: what is done here.
        models: registry names of the models it concerns; empty: every suite.
        meters: it concerns suites that use one of these; empty: every suite.
    """

    what: str
    ours: str
    models: tuple[str, ...] = ()
    meters: tuple[str, ...] = ()


PAPERS = {
    "budgetformer": "BudgetFormer (Adaptive Head Budgeting, arXiv 2604.22583)",
}
"""The paper behind a model. Read at second hand (abstract and digests of version 1); no official code
was found, and later versions may say more."""

_BUDGET = ("budgetformer",)
_DRAWN = ("random-trained", "random-at-test")

CHOICES: tuple[Choice, ...] = (
    Choice(
        "budget network: width, activation, start",
        "d_model/4 hidden units, GELU, last bias 0 so that s starts near 0.5; one per layer, not shared; "
        "gradients flow back into the encoder",
        _BUDGET,
    ),
    Choice(
        "pooling that the controllers read", "mean over the tokens that are not padding", _BUDGET
    ),
    Choice(
        "formula of the soft mask in training",
        "m_i = min(1, s H p_i) on head i's output; inference runs the chosen heads at weight 1, so the two "
        "differ: both accuracies are reported; `gate` and `keep_gate` offer others",
        _BUDGET,
    ),
    Choice(
        "rounding of s H to a number of heads (sources disagree)",
        'k = max(1, floor(s H + 1e-6)); `rounding = "ceil"` is an option',
        _BUDGET,
    ),
    Choice(
        "noise on the head scores: law and schedule",
        "normal, standard deviation falling from 1 to 0 in a straight line over training",
        _BUDGET,
    ),
    Choice(
        "temperature tau: start, end, form", "2.0 to 0.5 in a straight line over training", _BUDGET
    ),
    Choice(
        "weights and form of the loss terms",
        "budget 1.0 (quadratic hinge outside [s_min, s_max]); entropy 0.01 (2u - 1) H(p)/log H with u the "
        "share of training done",
        _BUDGET,
    ),
    Choice(
        "encoder: normalisation, positions, feed-forward width, classifier input, dropout",
        "pre-norm, learned positions, 4 d_model, mean over tokens, 0.1; small sizes that train on a CPU, "
        "not the paper's 4 layers x 8 heads x 768",
    ),
    Choice(
        "what counts as saved work",
        "a head that is not selected costs nothing: neither its scores nor its Q, K, V and output "
        "projections. The paper's printed cuts fit a count that saves the attention core alone, so three "
        "cuts are given",
        meters=("flops",),
    ),
    Choice(
        "random controls",
        "k is drawn from the trained model's k histogram on the validation split (random-trained), or is its "
        "own k for the input (random-at-test); then k heads at random, all equally likely",
        _DRAWN,
    ),
    Choice(
        "static heads: which, and how many",
        "the trained dense model's most important ones, E|dL/d xi| over the training split (Michel et al. "
        "2019); k of a layer is the trained model's mean k on the validation split, a share of the inputs "
        "drawn at random getting the whole number above it",
        ("static-heads",),
    ),
    Choice(
        'margins: "not less accurate", "does not need attention"',
        "one percentage point; each claim file says why",
        meters=("accuracy",),
    ),
)


PAPERS_INTERVAL = (0.1, 0.9)


def choices_for(view: View) -> list[Choice]:
    """The choices that concern a suite's models and meters; its budget intervals come first."""
    models = {p.point.model for p in view.results.expansion.points}
    meters = {name for p in view.results.expansion.points for name in p.meters}
    return [
        *_intervals(view),
        *(
            choice
            for choice in CHOICES
            if (not choice.models or models & set(choice.models))
            and (not choice.meters or meters & set(choice.meters))
        ),
    ]


def _intervals(view: View) -> list[Choice]:
    """What the suite's trained variants declare, beside the interval that a digest names."""
    used: dict[tuple[float, float], dict[str, None]] = {}
    for variant in view.variants:
        if variant.trained and variant.model == "budgetformer":
            config = view.config(variant)
            default = MODELS.get(variant.model).declarable()
            interval = tuple(config.get(name, default[name]) for name in ("s_min", "s_max"))
            used.setdefault(interval, {})[f"`{variant.label}`"] = None
    if not used:
        return []
    told = [
        f"[{low:g}, {high:g}]"
        + (" (the digest's)" if (low, high) == PAPERS_INTERVAL else "")
        + f" for {listing(list(labels))}"
        for (low, high), labels in used.items()
    ]
    low, high = PAPERS_INTERVAL
    return [
        Choice(
            "interval [s_min, s_max]",
            f"a digest names [{low:g}, {high:g}]; here {' and '.join(told)}. Inside its interval the loss "
            "leaves s alone, so a wide one lets the task loss pull s up",
        )
    ]
