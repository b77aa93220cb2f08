"""What this suite had to decide because the paper, as far as we could read it, does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
        inputs: it concerns suites with models that read such inputs; empty: every suite.
        meters: it concerns suites that use one of these; empty: every suite.
    """

    what: str
    ours: str
    models: tuple[str, ...] = ()
    meters: tuple[str, ...] = ()
    inputs: Literal["", "text", "image"] = ""


S2S = (
    "S2S (From Sparsity to Simplicity, arXiv 2605.18865), read at second hand; it names no code, and "
    "what its "
    "first author published with an earlier paper (FAR) was read in its place"
)
PAPERS = {
    "budgetformer": (
        "BudgetFormer (Adaptive Head Budgeting, arXiv 2604.22583), read at second hand; no official code was "
        "found"
    ),
    "vit-hybrid": S2S,
    "bert-hybrid": S2S,
}
"""The paper behind a model, and how it was read: abstracts and digests; later versions may say more."""

_BUDGET = ("budgetformer",)
_HYBRIDS = ("vit-hybrid", "bert-hybrid")
_DRAWN = (
    "random-trained", "random-at-test", "bert-random-trained", "bert-random-at-test",
)  # fmt: skip

CHOICES: tuple[Choice, ...] = (
    Choice(
        "budget network: width, activation, start",
        "d_model/4 hidden units, GELU, last bias 0 so that s starts near 0.5 (`initial_budget` moves it; "
        "inside "
        "the interval s hardly leaves its start, so that it decides how many heads run); one per layer, not "
        "shared; gradients flow back into the encoder",
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
        inputs="text",
    ),
    Choice(
        "what counts as saved work",
        "a head that is not selected costs nothing: neither its scores nor its Q, K, V and output "
        "projections. The paper's printed cuts fit a count that saves the attention core alone, so three "
        "cuts are given",
        meters=("flops",),
        inputs="text",
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
        ("static-heads", "bert-static-heads"),
    ),
    Choice(
        'margins: "not less accurate", "does not need attention"',
        "one percentage point; each claim file says why",
        meters=("accuracy",),
    ),
)


REPLACEMENT: tuple[Choice, ...] = (
    Choice(
        "which layers are replaced together, and how long students are trained",
        "as the suite's axis says; one budget in samples for everything that is compared, the teacher "
        "trained "
        "on included. The paper's groups and its budget were not found",
        _HYBRIDS,
        ("training",),
    ),
    Choice(
        "stages of distillation",
        "2 : 1 in samples (`stage1_share`), as the published code has 200 and 100 epochs, and learning rates "
        "10 : 1 as there, larger for small models (`stage1_lr`, `stage2_lr`); modules without weights of "
        "their "
        "own spend everything in stage 2; no soft labels (`logit_weight`)",
        _HYBRIDS,
        ("training",),
    ),
    Choice(
        "modules beside BiLSTM and BiMamba",
        "half-width BiLSTM, BiGRU, linear attention, depth-wise convolution, mean token, and `identity`, "
        "which "
        "puts nothing in attention's place and drops its output projection",
        _HYBRIDS,
    ),
    Choice(
        "how sparse attention is",
        "four measures, of which 1 - normalised entropy over all queries decides; the paper's was not found",
        meters=("sparsity",),
    ),
    Choice(
        "which layers can show anything",
        "those whose deletion, without training, costs one point of validation accuracy or more",
        meters=("deletion",),
    ),
    Choice(
        "class token of a teacher that halts tokens",
        "mode `s2s`: it never halts, and its remainder is added once, where the published code adds it anew "
        "in each layer after its threshold; its gate has a centre of its own, above its scores, where the "
        "published one is shared with the patches, so that it starts as the last layer's output",
        ("avit",),
    ),
    Choice(
        "how sparse a teacher is made",
        "the centre of its gate is set on validation images so that `keep_ratio` of the patches are "
        "kept, then "
        "it is trained on: fresh weights give the published centre no gradient. Levels and knob of the paper "
        "were not found",
        ("avit",),
    ),
    Choice(
        "how students learn to halt",
        "layer l's keep rate is compared with the product of (1 - h) over the layers before it, since those "
        "decide what it computes; the published code takes layer l into the product",
        ("vit-hybrid",),
    ),
    Choice(
        "what faster means",
        "the whole model from pixels to logits on one thread of a CPU, against the same model with fused "
        "attention. What the paper's 1.71x measures was not found; the published code times one module",
        _HYBRIDS,
        ("latency",),
    ),
)
"""What S2S leaves open."""

PAPERS_INTERVAL = (0.1, 0.9)


def choices_for(view: View) -> list[Choice]:
    """The choices that concern a suite's models and meters; its budget intervals come first."""
    models = {p.point.model for p in view.results.expansion.points}
    inputs = {MODELS.get(model).inputs for model in models}
    meters = {name for p in view.results.expansion.points for name in p.meters}
    return [
        *_intervals(view),
        *(
            choice
            for choice in (*CHOICES, *REPLACEMENT)
            if (not choice.models or models & set(choice.models))
            and (not choice.meters or meters & set(choice.meters))
            and (not choice.inputs or choice.inputs in inputs)
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
