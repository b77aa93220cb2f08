"""What this suite had to decide because the paper, as far as we could read it, does not say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """One decision of ours.

    Attributes:
        what: what the paper leaves open.
        ours: what is done here.
        models: registry names of the models it concerns; empty: every suite.
    """

    what: str
    ours: str
    models: tuple[str, ...] = ()


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
        "differ: both accuracies are reported",
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
        "interval [s_min, s_max]",
        "a digest names [0.1, 0.9]; a wide interval lets the task loss pull s up, so the suite declares "
        "narrower ones, printed with the models above",
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
    ),
    Choice(
        "random controls",
        "k is drawn from the trained model's k histogram on the validation split (random-trained), or is its "
        "own k for the input (random-at-test); then k heads at random, all equally likely",
        _DRAWN,
    ),
    Choice(
        'margins: "not less accurate", "does not need attention"',
        "one percentage point; each claim file says why",
    ),
)


def choices_for(models: set[str]) -> list[Choice]:
    """The choices that concern these models."""
    return [c for c in CHOICES if not c.models or models & set(c.models)]
