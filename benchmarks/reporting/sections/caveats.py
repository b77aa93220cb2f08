"""What the numbers do not show: plain warnings that a reader needs before the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.checking.attention import attention_need
from benchmarks.reporting.sections.tables import short_name
from benchmarks.reporting.sections.times import ram_share, speedup
from benchmarks.reporting.sections.verdicts import noise
from benchmarks.reporting.text import (
    bounds,
    bullets,
    counted,
    duration,
    listing,
    percent,
    points,
    points_span,
    ratio,
)

if TYPE_CHECKING:
    from benchmarks.checking.verdicts import ClaimResult
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View
    from benchmarks.statistics.intervals import Interval

MARGIN = 0.01
"""Accuracies less than this apart (fraction) count as no loss; ours, as in the claims."""

MEANING = {
    "random-trained": (
        "heads drawn at random, in training and after, do better than learned ones",
        "learning which heads run gains less than a point over drawing them, in training and after",
    ),
    "random-at-test": (
        "heads drawn at random serve the trained model better than those it chooses",
        "which of its heads the trained model runs matters less than a point",
    ),
    "fewer-heads": (
        "a dense model of about the same MACs does better",
        "choosing heads for each input gains less than a point over a dense model of about the same MACs",
    ),
    "static-heads": (
        "one choice of heads for all inputs does better",
        "choosing heads for each input gains less than a point over one choice for all inputs",
    ),
}
"""What it says that a control is more accurate, or not a point less; no more than what it takes away."""


def caveats(view: View, claims: Sequence[ClaimResult] = ()) -> str:
    """A list, a data set after the other; empty where there is nothing to warn of."""
    lines = []
    for dataset, named in view.main.items():
        variants = _once(named)
        lead = f"**{view.name(dataset)}**"
        lines += [f"{lead}: {line}" for line in _of_dataset(view, dataset, variants, claims)]
    lines += [*_noisy(view, claims), *_energy(view)]
    return bullets(lines)


def _once(named: Sequence[Variant]) -> list[Variant]:
    """Each set of weights once, by the first of its names."""
    return list({variant.group_id: variant for variant in reversed(named)}.values())[::-1]


def _of_dataset(
    view: View, dataset: str, variants: Sequence[Variant], claims: Sequence[ClaimResult]
) -> Iterator[str]:
    yield from _attention(view, dataset, variants)
    yield from _slower(view, variants, claims)
    for variant in variants:
        if not variant.is_control and not variant.is_baseline:
            yield from _controls(view, variant, variants)
    yield from _mismatch(view, variants)
    yield from _yardstick(view, dataset, variants)


def _attention(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    """Where no attention at all is as good, saving attention proves nothing."""
    for variant in variants:
        base = view.baseline(variant)
        if variant.model == "no-attention" and base is not None:
            need = attention_need(view.results, variant.sweep, dataset, base.label, margin=MARGIN)
            if need.text and need.need != "unmeasured":
                yield f"{need.text}."


def _yardstick(view: View, dataset: str, variants: Sequence[Variant]) -> Iterator[str]:
    """A yardstick, such as a bag of words, that does better than the baseline."""
    yardsticks = [y for y in view.yardsticks(dataset) if y.metric == "accuracy"]
    best = max(yardsticks, key=lambda y: y.value, default=None)
    for variant in variants:
        accuracy = view.mean(variant, "accuracy", "accuracy")
        if best and accuracy is not None and variant.is_baseline and accuracy < best.value:
            seconds = view.mean(variant, "training", "train_seconds")
            what = "a simple model of pixels" if variant.reads_images else "a bag of words"
            spent = f" for {duration(seconds)} a seed" if seconds is not None else ""
            yield (
                f"{what} ({short_name(best)}) reaches {percent(best.value)} % on {best.split}; "
                f"`{variant.label}`, trained on the train split alone{spent}, reaches "
                f"{percent(accuracy)} %."
            )


def _controls(view: View, budget: Variant, variants: Sequence[Variant]) -> Iterator[str]:
    """A control that keeps the budget and does as well takes the credit away from the idea."""
    open_, single, seeds = [], [], 0
    for control in variants:
        if control.model not in MEANING or control.source != budget.group_id:
            continue
        gap = view.difference(control, budget, "accuracy")
        if gap is None:
            continue
        told = f"`{control.label}` ({_gap(gap)})"
        if gap.method == "single":
            single.append(told)
        elif gap.low > 0:
            yield (
                f"`{control.label}` is more accurate than `{budget.label}` ({_gap(gap)}): "
                f"{MEANING[control.model][0]}."
            )
        elif gap.low >= -MARGIN:
            yield (
                f"`{control.label}` is not a point less accurate than `{budget.label}` ({_gap(gap)}): "
                f"{MEANING[control.model][1]}."
            )
        elif gap.high >= 0:
            open_.append(told)
            seeds = gap.n
    if open_:
        yield (
            f"`{budget.label}` and {listing(open_, by=' or ')} cannot be told apart at "
            f"{counted(seeds, 'seed')}: neither that the control is a point less accurate is shown, nor "
            "that it is not."
        )
    if single:
        yield (
            f"one seed decides nothing between `{budget.label}` and its controls: "
            f"{listing(single)}."
        )


def _mismatch(view: View, variants: Sequence[Variant]) -> Iterator[str]:
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
            f"inference and training's soft mode differ by more than a point ({listing(told)}, hard "
            "minus soft): the two masks do not match."
        )


def _slower(
    view: View, variants: Sequence[Variant], claims: Sequence[ClaimResult]
) -> Iterator[str]:
    """Where a variant takes longer than the baseline, whatever its MACs promise."""
    told: dict[str, list[str]] = {}
    sizes = set()
    for variant in variants:
        base = view.baseline(variant)
        if variant.is_control or base is None:
            continue
        for size in view.batch_sizes:
            value = speedup(view, variant, size)
            if value is None or value.high is None or value.high >= 1:
                continue
            sizes.add(size)
            promised = view.promised(variant, size)
            beside = f", where MACs promise {ratio(promised)}" if promised else ""
            told.setdefault(base.label, []).append(
                f"`{variant.label}` at batch {size} ({ratio(value.value)} {bounds(value)}{beside})"
            )
    tested = {r.claim.batch_size for r in claims} - {None}
    only = (
        f" The claim on time tests batch {listing(sorted(map(str, tested)))} only."
        if tested
        else ""
    )
    for base_label, texts in told.items():
        yield (
            f"slower than `{base_label}`: {listing(texts, by='; ')}.{only if sizes - tested else ''}"
        )


def _noisy(view: View, claims: Sequence[ClaimResult]) -> Iterator[str]:
    """The verdicts that rest on timings too restless to be trusted."""
    for result in claims:
        told = [
            f"`{verdict.candidate}` on {view.name(verdict.dataset)} ({verdict.outcome}; {text})"
            for verdict in result.verdicts
            if (text := noise(result.claim, verdict))
        ]
        if told:
            yield f'The measurements that decide "{result.claim.title}" are noisy: {listing(told)}.'


def _energy(view: View) -> Iterator[str]:
    modelled = [
        r
        for r in view.ok
        if r.meter == "carbon" and r.info.get("energy_source") in {"model", "constant"}
    ]
    if modelled:
        sources = sorted({str(r.info["energy_source"]) for r in modelled})
        told = [f"source: {listing(sources)}", *filter(None, [ram_share(modelled)]), "single pass"]
        yield (
            f"Energy is not metered on this machine ({'; '.join(told)}): the figure restates time and "
            "ranks no two models, so no energy front is drawn."
        )


def _gap(gap: Interval) -> str:
    if gap.method == "single":
        return f"{points(gap.estimate)} points"
    return f"{points(gap.estimate)} points, 95 % interval {points_span(gap.low, gap.high)}"
