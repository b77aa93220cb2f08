"""Whether a data set needs attention at all: asked of the model that has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchmarks.statistics.intervals import Interval, paired_t

if TYPE_CHECKING:
    from benchmarks.results import ResultSet

CONTROL = "no-attention"
MARGIN = 0.01
"""Of accuracy; the margin under which any model here counts as not less accurate than dense."""

Need = Literal["needed", "not needed", "unclear", "unmeasured"]


@dataclass(frozen=True)
class AttentionNeed:
    """How the model without attention compares with the dense one on one data set.

    Attributes:
        need: "not needed" if the whole interval of no-attention minus dense lies at or above
            -margin (it is not less accurate, by the very test that a head budget has to pass);
            "needed" if it lies wholly below; "unclear" between; "unmeasured" without a common seed.
        difference: no-attention minus dense, paired over seeds; None with fewer than two.
        text: one sentence for a report; empty if attention is needed.
    """

    need: Need
    difference: Interval | None
    text: str


def attention_need(
    results: ResultSet,
    sweep: str,
    dataset: str,
    baseline: str = "dense",
    *,
    margin: float = MARGIN,
    confidence: float = 0.95,
) -> AttentionNeed:
    """Asks a sweep's `no-attention` control whether a data set needs attention.

    Args:
        results: of the suite.
        sweep: name of a sweep that has both models.
        dataset: name of the card.
        baseline: label of the dense model.
        margin: largest loss of accuracy that still counts as none (fraction).
        confidence: level of the interval over seeds.
    """
    without = _accuracies(results, sweep, dataset, model=CONTROL)
    dense = _accuracies(results, sweep, dataset, label=baseline)
    differences = [without[seed] - dense[seed] for seed in without if seed in dense]
    if not differences:
        return AttentionNeed(
            "unmeasured", None, "whether this set needs attention was not measured"
        )
    if len(differences) == 1:
        text = (
            f"not shown that this set needs attention: {CONTROL} is {100 * differences[0]:+.2f} "
            f"points against {baseline} on the one seed that both have"
        )
        return AttentionNeed("unclear", None, text)
    interval = paired_t(differences, confidence)
    whole = "a point" if margin == MARGIN else f"{100 * margin:g} points"
    above = "more accurate than" if interval.low > 0 else f"not {whole} less accurate than"
    numbers = (
        f"{100 * interval.estimate:+.2f} points, {100 * confidence:g} % interval "
        f"[{100 * interval.low:+.2f}, {100 * interval.high:+.2f}] over {interval.n} seeds"
    )
    if interval.low >= -margin:
        text = (
            f"this set does not need attention: {CONTROL} is {above} {baseline} "
            f"({numbers}), so a small head budget proves nothing here"
        )
        return AttentionNeed("not needed", interval, text)
    if interval.high < -margin:
        return AttentionNeed("needed", interval, "")
    if interval.high < 0:
        found = f"{CONTROL} is less accurate than {baseline}, but not shown to be {whole} less"
    else:
        found = f"{CONTROL} and {baseline} cannot be told apart"
    text = f"not shown that this set needs attention: {found} ({numbers})"
    return AttentionNeed("unclear", interval, text)


def _accuracies(
    results: ResultSet, sweep: str, dataset: str, *, model: str | None = None, label: str = ""
) -> dict[int, float]:
    """By seed, of the sweep's plain setting (no axis but the seed)."""
    found = {}
    for planned in results.expansion.points:
        point = planned.point
        here = any(
            use.sweep == sweep and not set(use.axes) - {"seed"} and (model or use.label == label)
            for use in planned.uses
        )
        if not here or point.dataset != dataset or (model and point.model != model):
            continue
        record = results.record(point.point_id, "accuracy")
        value = record.get("accuracy") if record else None
        if value is not None:
            found[point.seed] = value.value
    return found
