"""What the numbers do not show: plain warnings that a reader needs before the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.catalog import DATASETS
from benchmarks.checking.attention import attention_need
from benchmarks.reporting.sections.tables import short_name
from benchmarks.reporting.text import bullets, listing, percent, points, ratio

if TYPE_CHECKING:
    from benchmarks.reporting.view import Variant, View
    from benchmarks.statistics.intervals import Interval

MARGIN = 0.01
"""Accuracies at most this far apart (fraction) are called "as accurate"; ours, as in the claims."""


def caveats(view: View) -> str:
    """A list, a data set after the other; empty where there is nothing to warn of."""
    lines = [line for dataset, vs in view.main.items() for line in _of_dataset(view, dataset, vs)]
    lines += list(_energy(view))
    return bullets(lines)


def _of_dataset(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    yield from _attention(view, dataset, variants)
    yield from _yardstick(view, dataset, variants)
    yield from _mismatch(view, dataset, variants)
    for variant in variants:
        if not variant.is_control and not variant.is_baseline:
            yield from _controls(view, dataset, variant, variants)
            yield from _slower(view, dataset, variant)


def _attention(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    """Where no attention at all is as good, saving attention proves nothing."""
    for variant in variants:
        base = view.baseline(variant)
        if variant.model == "no-attention" and base is not None:
            need = attention_need(view.results, variant.sweep, dataset, base.label, margin=MARGIN)
            if need.text and need.need != "unmeasured":
                yield f"**{dataset}**: {need.text}."


def _yardstick(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    yardsticks = [y for y in DATASETS.get(dataset).yardsticks if y.metric == "accuracy"]
    best = max(yardsticks, key=lambda y: y.value, default=None)
    for variant in variants:
        accuracy = view.mean(variant, "accuracy", "accuracy")
        if best and accuracy is not None and variant.is_baseline and accuracy < best.value:
            yield (
                f"**{dataset}**: {short_name(best)} reaches {percent(best.value)} %, "
                f"`{variant.label}` {percent(accuracy)} %: these are small models, trained for "
                "minutes, and far from the best that is known."
            )


def _controls(
    view: View, dataset: str, budget: Variant, variants: Sequence[Variant]
) -> Iterator[str]:
    """A control that keeps the budget and is as accurate takes the credit away from the idea."""
    meaning = {
        "random-trained": "which heads run matters little here",
        "random-at-test": "the trained model hardly cares which of its heads run",
        "fewer-heads": "a dense model with no more MACs does as well",
    }
    for control in variants:
        source = control.points[0].point.source
        if control.model not in meaning or source is None or source.group_id != budget.group_id:
            continue
        gap = view.difference(control, budget, "accuracy")
        if gap is None or gap.estimate < -MARGIN:
            continue
        if gap.method != "single" and gap.low >= -MARGIN:
            yield (
                f"**{dataset}**: `{control.label}` is as accurate as `{budget.label}` to within a "
                f"point ({_gap(gap)}): {meaning[control.model]}."
            )
        else:
            yield (
                f"**{dataset}**: `{control.label}` is not shown to be a point less accurate than "
                f"`{budget.label}` ({_gap(gap)})."
            )


def _mismatch(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    """Training weighs all heads, inference picks some: how far the answers are apart."""
    told = []
    for variant in variants:
        hard = view.values(variant, "accuracy", "accuracy")
        soft = view.values(variant, "accuracy", "soft_accuracy")
        gaps = [hard[s].value - soft[s].value for s in hard if s in soft]
        mean = sum(gaps) / len(gaps) if gaps else 0.0
        if not variant.is_control and abs(mean) > MARGIN:
            told.append(f"`{variant.label}` {points(mean)} points")
    if told:
        yield (
            f"**{dataset}**: inference and training's soft mode differ by more than a point "
            f"({listing(told)}, hard minus soft): the two masks do not match."
        )


def _slower(view: View, dataset: str, variant: Variant) -> Iterator[str]:
    record, promised = view.first(variant, "latency"), view.promised(variant)
    batch_size = view.batch_sizes[-1]
    speedup = record.get("speedup", batch_size=batch_size) if record else None
    if speedup is None or promised is None or speedup.high is None or promised <= 1:
        return
    if speedup.high < 1:
        yield (
            f"**{dataset}**: `{variant.label}` is slower than the baseline at batch {batch_size} "
            f"({ratio(speedup.value)}), though its MACs promise {ratio(promised)}."
        )


def _energy(view: View) -> Iterator[str]:
    modelled = {
        str(r.info.get("energy_source"))
        for r in view.ok
        if r.meter == "carbon" and r.info.get("energy_source") in {"model", "constant"}
    }
    if modelled:
        yield (
            f"Energy is not metered on this machine (source: {listing(sorted(modelled))}): the figure "
            "restates time and ranks no two models, so no energy front is drawn."
        )


def _gap(gap: Interval) -> str:
    if gap.method == "single":
        return f"{points(gap.estimate)} points, single seed"
    return f"{points(gap.estimate)} points, 95 % interval [{points(gap.low)}, {points(gap.high)}]"
