"""The main tables of a data set: accuracy, cost, time. Narrow enough for a page on a code host."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from benchmarks.reporting.sections.times import time_note, time_table
from benchmarks.reporting.sections.validation import on_validation_only, validation_table
from benchmarks.reporting.students import students
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    bounds,
    percent,
    points,
    points_span,
    significant,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.data.card import Yardstick
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

COST_NOTE = (
    "Multiply-accumulates (MACs; FLOPs are twice that) of one test input at its own length, without "
    "padding"
)
CONTROLLERS = "; the whole model includes the controllers"
CUTS = ". Cuts are against the baseline, mean over seeds."


def results(view: View) -> str:
    """Tables for each data set of the main sweeps, of what the suite asks for, each with its note."""
    parts = []
    for dataset, variants in view.main.items():
        card = view.card(dataset)
        role = f" ({card.role})" if card.role else ""
        parts.append(f"## Results on {view.name(dataset)}{role}")
        if on_validation_only(view, variants):
            parts.append(validation_table(view, variants))
        if view.plans(variants, "accuracy"):
            parts.append(accuracy_table(view, dataset, variants))
            parts.append(_accuracy_note(view, dataset, variants))
        if view.plans(variants, "flops"):
            parts.append(cost_table(view, variants))
            note = COST_NOTE + (CONTROLLERS if any(v.decides_heads for v in variants) else "")
            parts.append(" ".join([note + CUTS, *residuals(view, variants)]))
        costs_alone = view.plans(variants, "memory") and not students(view)
        if view.plans(variants, "latency", "carbon") or costs_alone:
            parts += [time_table(view, variants), time_note(view, variants)]
    return "\n\n".join(parts)


def _accuracy_note(view: View, dataset: str, variants: Sequence[Variant]) -> str:
    """How to read the table, for the number of seeds that are there."""
    n = max(len(view.values(v, "accuracy", "accuracy")) for v in variants)
    examples = next(
        (r.data.n for v in variants for r in view.records(v, "accuracy") if r.data), None
    )
    on = f"{examples:,} test inputs" if examples else "the test split"
    if n > 1:
        spread = (
            f"Mean of {n} seeds (lowest to highest) on {on}; the difference is paired over seeds, "
            "with its 95 % t interval, which is wide at so few seeds."
        )
        means = "k and s are means over inputs, layers and seeds"
    else:
        spread = (
            f"Single: one seed on {on}, with its 95 % Wilson interval, which says how far the test "
            "inputs could have moved it; other seeds may differ by more."
        )
        means = "k and s are means over inputs and layers"
    parts = [spread]
    if any(view.values(v, "accuracy", "soft_accuracy") for v in variants):
        parts += [
            "Soft mode is training's gating of all heads, without noise.",
            f"{means}; s is what a budget network asks for, so a variant without one has none.",
            _drawn_at_test(view, variants),
        ]
    if any(v.halts_tokens for v in variants):
        parts.append("Tokens computed: share of all layers' tokens, class token included.")
    parts += [
        f"The yardstick is no model of this suite: {y.name}, {y.metric} on {y.split}; {y.source}."
        for y in view.yardsticks(dataset)
    ]
    return " ".join(part for part in parts if part)


def _drawn_at_test(view: View, variants: Sequence[Variant]) -> str:
    """Why a model that keeps another's budget networks does not run just as many heads."""
    for variant in variants:
        source = next((v for v in variants if v.group_id == variant.source), None)
        if variant.model != "random-at-test" or source is None:
            continue
        ours, theirs = (view.mean(v, "accuracy", "mean_k") for v in (variant, source))
        if ours is not None and theirs is not None and ours != theirs:
            return (
                f"`{variant.label}` has the weights of `{source.label}`, budget networks included; its "
                "k differs a little because layers after the first see other inputs."
            )
    return ""


def accuracy_table(view: View, dataset: str, variants: Sequence[Variant]) -> str:
    """Accuracy with its interval, macro-F1, soft accuracy, k and s; the card's yardsticks below."""
    headers = [
        "variant",
        "accuracy (%)",
        "difference to baseline (points)",
        "macro-F1 (%)",
        "soft-mode accuracy (%)",
        "mean k of H (heads)",
        "mean s",
        "tokens computed (%)",
    ]
    heads = any(v.decides_heads for v in variants)
    keep = [True] * 4 + [heads] * 3 + [any(v.halts_tokens for v in variants)]
    rows = [_accuracy_row(view, variant) for variant in variants]
    for yardstick in view.yardsticks(dataset):
        if yardstick.metric == "accuracy":
            cells = [f"*yardstick: {short_name(yardstick)}*", f"*{percent(yardstick.value)}*"]
            rows.append([*cells, *[NOT_APPLICABLE] * (len(headers) - len(cells))])
    headers, *rows = [list(itertools.compress(line, keep)) for line in (headers, *rows)]
    return table(headers, rows)


def short_name(yardstick: Yardstick) -> str:
    """A yardstick's name up to its details."""
    return yardstick.name.split(" (")[0]


def _accuracy_row(view: View, variant: Variant) -> list[str]:
    found = view.values(variant, "accuracy", "accuracy")
    if not found:
        return [_name(variant), *[MISSING] * 7]
    seeds = len(found)
    mean = sum(v.value for v in found.values()) / seeds
    if seeds == 1:
        value = next(iter(found.values()))
        cell = f"{percent(mean)} {bounds(value, 1, 100)} single".replace("  ", " ")
    else:
        low, high = (f(v.value for v in found.values()) for f in (min, max))
        cell = f"{percent(mean)} ({percent(low)} to {percent(high)})"
    heads = view.config(variant).get("n_heads")
    k, s = (view.mean(variant, "accuracy", name) for name in ("mean_k", "mean_s"))
    return [
        _name(variant),
        cell,
        _difference(view, variant),
        _mean(view, variant, "accuracy", "macro_f1"),
        _mean(view, variant, "accuracy", "soft_accuracy"),
        f"{k:.2f} of {heads}" if k is not None else NOT_APPLICABLE,
        f"{s:.3f}" if s is not None and "s_min" in view.config(variant) else NOT_APPLICABLE,
        _tokens(view, variant),
    ]


def _tokens(view: View, variant: Variant) -> str:
    if not variant.halts_tokens:
        return percent(1.0)
    share = view.mean(variant, "accuracy", "keep_ratio", tokens="all")
    return percent(share) if share is not None else MISSING


def _difference(view: View, variant: Variant) -> str:
    base = view.baseline(variant)
    if base is None:
        return "baseline" if variant.is_baseline else NOT_APPLICABLE
    interval = view.difference(variant, base, "accuracy")
    if interval is None:
        return MISSING
    if interval.method == "single":
        return f"{points(interval.estimate)} single"
    return f"{points(interval.estimate)} {points_span(interval.low, interval.high)}"


def cost_table(view: View, variants: Sequence[Variant]) -> str:
    """MACs of the whole model and what is cut of them, of attention and of its core; parameters."""
    rows = []
    for variant in variants:
        macs = _macs(view, variant, "macs", "mean")
        if macs is None:
            rows.append([_name(variant), *[MISSING] * 6])
            continue
        p95 = _macs(view, variant, "macs", "p95")
        memory = view.first(variant, "memory")
        parameters = memory.get("parameters") if memory else None
        rows.append(
            [
                _name(variant),
                significant(macs / 1e6),
                significant(p95 / 1e6) if p95 is not None else MISSING,
                _cut(view, variant, "macs"),
                _cut(view, variant, "macs_attention"),
                _cut(view, variant, "macs_attention_core"),
                f"{parameters.value:,.0f}" if parameters else _absent(view, variant, "memory"),
            ]
        )
    headers = [
        "variant",
        "MACs per input, mean (M)",
        "p95 (M)",
        "cut, whole model (%)",
        "cut, attention with projections (%)",
        "cut, attention core (%)",
        "parameters",
    ]
    if not view.asks(variants, "memory"):  # which counts them
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return table(headers, rows)


def residuals(view: View, variants: Sequence[Variant]) -> list[str]:
    """For controls matched to another model's MACs: each seed's heads, and what is left between."""
    lines = []
    for variant in variants:
        source = variant.points[0].point.source
        partner = next((v for v in variants if source and v.group_id == source.group_id), None)
        if partner is None:
            continue
        ours, theirs = (_by_seed(view, v, "macs", "mean") for v in (variant, partner))
        told = []
        for planned in variant.points:
            seed = planned.point.seed
            heads = view.resolved(planned).get("heads_per_layer")
            if heads and ours.get(seed) and theirs.get(seed):
                left = (ours[seed] - theirs[seed]) / theirs[seed]
                counts = ", ".join(map(str, heads))
                told.append(f"seed {seed}: [{counts}] heads, {points(left)} % MACs")
        if told:
            lines.append(
                f"`{variant.label}` is given as many heads in each layer as come nearest to the MACs of "
                f"`{partner.label}` on validation, from below if one head allows it; on test that is, "
                f"against `{partner.label}`, {'; '.join(told)}."
            )
    return lines


def _absent(view: View, variant: Variant, meter: str) -> str:
    return MISSING if view.plans([variant], meter) else NOT_APPLICABLE


def _name(variant: Variant) -> str:
    return f"`{variant.label}`"


def _mean(view: View, variant: Variant, meter: str, name: str) -> str:
    value = view.mean(variant, meter, name)
    return percent(value) if value is not None else NOT_APPLICABLE


def _by_seed(view: View, variant: Variant, name: str, stat: str) -> dict[int, float]:
    return {s: v.value for s, v in view.values(variant, "flops", name, stat=stat).items()}


def _macs(view: View, variant: Variant, name: str, stat: str) -> float | None:
    return view.mean(variant, "flops", name, stat=stat)


def cut(view: View, variant: Variant, name: str) -> float | None:
    """Share saved against the baseline, mean over the seeds that both have."""
    base = view.baseline(variant)
    if base is None:
        return None
    ours, theirs = (_by_seed(view, v, name, "mean") for v in (variant, base))
    cuts = [1 - ours[s] / theirs[s] for s in ours if theirs.get(s)]
    return sum(cuts) / len(cuts) if cuts else None


def _cut(view: View, variant: Variant, name: str) -> str:
    if view.baseline(variant) is None:
        return "baseline" if variant.is_baseline else NOT_APPLICABLE
    saved = cut(view, variant, name)
    return percent(saved) if saved is not None else MISSING
