"""The main tables of a data set: accuracy, cost, time. Narrow enough for a page on a code host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.catalog import DATASETS
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    percent,
    points,
    significant,
    span,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.data.card import Yardstick
    from benchmarks.records import Record, Value
    from benchmarks.reporting.view import Variant, View

COST_NOTE = (
    "Multiply-accumulates (MACs; FLOPs are twice that) of one test input at its own length, without "
    "padding; the whole model includes the controllers. Cuts are against the baseline, mean over seeds."
)


def results(view: View) -> str:
    """Three tables for each data set of the main sweeps, each with the note that it needs."""
    parts = []
    for dataset, variants in view.main.items():
        card = DATASETS.get(dataset)
        role = f" ({card.role})" if card.role else ""
        parts += [
            f"## Results on {dataset}{role}",
            accuracy_table(view, dataset, variants),
            _accuracy_note(view, dataset, variants),
            cost_table(view, variants),
            " ".join([COST_NOTE, *residuals(view, variants)]),
            time_table(view, variants),
            _time_note(view, variants),
        ]
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
    else:
        spread = (
            f"Single: one seed on {on}, with its 95 % Wilson interval, which says how far the test "
            "inputs could have moved it; other seeds may differ by more."
        )
    parts = [
        spread,
        "Soft mode is training's gating of all heads, without noise.",
        "k and s are means over inputs, layers and seeds.",
    ]
    parts += [
        f"Yardstick: {y.name}, {y.metric} on {y.split}; {y.source}."
        for y in DATASETS.get(dataset).yardsticks
    ]
    return " ".join(parts)


def _time_note(view: View, variants: Sequence[Variant]) -> str:
    timed = next((r for v in variants if (r := view.first(v, "latency"))), None)
    if timed is None:
        return "Time, memory and energy are measured on the first seed's weights only."
    seed = timed.seed if timed.weights_seed is None else timed.weights_seed
    processes = timed.info.get("processes", "several")
    return (
        f"Measured on the weights of seed {seed} only, as is the promise beside it. Realised speed-up: "
        f"baseline and variant in alternation, {processes} fresh processes, 95 % t interval over "
        "process means; above 1 is faster. Latency is of one forward pass of a batch, for orientation. "
        "Peak memory is of activations and scratch, without weights."
    )


def accuracy_table(view: View, dataset: str, variants: Sequence[Variant]) -> str:
    """Accuracy with its interval, macro-F1, soft accuracy, k and s; the card's yardsticks below."""
    rows = [_accuracy_row(view, variant) for variant in variants]
    for yardstick in DATASETS.get(dataset).yardsticks:
        if yardstick.metric == "accuracy":
            cells = [f"*{short_name(yardstick)}*", percent(yardstick.value)]
            rows.append([*cells, *[NOT_APPLICABLE] * 5])
    headers = [
        "variant",
        "accuracy (%)",
        "difference to baseline (points)",
        "macro-F1 (%)",
        "soft-mode accuracy (%)",
        "mean k of H (heads)",
        "mean s",
    ]
    return table(headers, rows)


def short_name(yardstick: Yardstick) -> str:
    """A yardstick's name up to its details."""
    return yardstick.name.split(" (")[0]


def _accuracy_row(view: View, variant: Variant) -> list[str]:
    found = view.values(variant, "accuracy", "accuracy")
    if not found:
        return [_name(variant), *[MISSING] * 4, MISSING, MISSING]
    seeds = len(found)
    mean = sum(v.value for v in found.values()) / seeds
    if seeds == 1:
        value = next(iter(found.values()))
        bounds = _bounds(value, 1, 100.0)
        cell = f"{percent(mean)} {bounds} single".replace("  ", " ")
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
        f"{s:.3f}" if s is not None else NOT_APPLICABLE,
    ]


def _difference(view: View, variant: Variant) -> str:
    base = view.baseline(variant)
    if base is None:
        return "baseline" if variant.is_baseline else NOT_APPLICABLE
    interval = view.difference(variant, base, "accuracy")
    if interval is None:
        return MISSING
    if interval.method == "single":
        return f"{points(interval.estimate)} single"
    return f"{points(interval.estimate)} [{points(interval.low)}, {points(interval.high)}]"


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
                f"{parameters.value:,.0f}" if parameters else MISSING,
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
    return table(headers, rows)


def time_table(view: View, variants: Sequence[Variant]) -> str:
    """Promised and realised speed-up, peak memory and energy of the one seed that is timed."""
    sizes = sorted({view.batch_sizes[0], view.batch_sizes[-1]})
    largest = sizes[-1]
    rows = []
    for variant in variants:
        latency = view.first(variant, "latency")
        memory, carbon = view.first(variant, "memory"), view.first(variant, "carbon")
        promised = view.promised(variant)
        if variant.is_baseline:
            speedups = ["baseline", *[NOT_APPLICABLE] * len(sizes)]
        else:
            speedups = [f"{promised:.2f}" if promised is not None else MISSING]
            speedups += [_speedup(latency, size) for size in sizes]
        rows.append(
            [
                _name(variant),
                *speedups,
                _latency(view, variant, variants, largest),
                _number(memory, "peak_memory", 1 / 2**20, batch_size=largest),
                _number(carbon, "energy", 1.0),
            ]
        )
    sources = energy_sources(view, variants)
    source = f"; {', '.join(sources)}" if sources else ""
    headers = [
        "variant",
        "speed-up promised by MACs (x)",
        *[f"realised, batch {size} (x)" for size in sizes],
        f"latency, batch {largest} (ms)",
        f"peak memory, batch {largest} (MiB)",
        f"energy per 1000 inputs (J{source})",
    ]
    return table(headers, rows)


def energy_sources(view: View, variants: Sequence[Variant]) -> list[str]:
    """Where the energy figures come from, as the records say it."""
    found = (view.first(variant, "carbon") for variant in variants)
    return sorted({str(r.info["energy_source"]) for r in found if r and "energy_source" in r.info})


def residuals(view: View, variants: Sequence[Variant]) -> list[str]:
    """For controls matched to another model's MACs: what is left between the two."""
    lines = []
    for variant in variants:
        source = variant.points[0].point.source
        config = view.config(variant)
        if source is None or not config.get("heads_per_layer"):
            continue
        partner = next((v for v in variants if v.group_id == source.group_id), None)
        if partner is None:
            continue
        ours, theirs = (_by_seed(view, v, "macs", "mean") for v in (variant, partner))
        both = [(ours[s], theirs[s]) for s in ours if s in theirs]
        if both:
            left = [100 * (mine - other) / other for mine, other in both]
            shown = list(dict.fromkeys((f"{min(left):+.1f}", f"{max(left):+.1f}")))
            heads = ", ".join(map(str, config["heads_per_layer"]))
            lines.append(
                f"`{variant.label}` keeps [{heads}] heads in its layers (first seed); its MACs differ by "
                f"{' to '.join(shown)} % from those of `{partner.label}`, to whose validation MACs it is "
                "matched."
            )
    return lines


def _name(variant: Variant) -> str:
    return f"`{variant.label}`"


def _mean(view: View, variant: Variant, meter: str, name: str) -> str:
    value = view.mean(variant, meter, name)
    return percent(value) if value is not None else NOT_APPLICABLE


def _bounds(value: Value, digits: int, scale: float = 1.0) -> str:
    if value.low is None or value.high is None:
        return ""
    return span(value.low, value.high, digits, scale)


def _by_seed(view: View, variant: Variant, name: str, stat: str) -> dict[int, float]:
    return {s: v.value for s, v in view.values(variant, "flops", name, stat=stat).items()}


def _macs(view: View, variant: Variant, name: str, stat: str) -> float | None:
    return view.mean(variant, "flops", name, stat=stat)


def _cut(view: View, variant: Variant, name: str) -> str:
    """Share saved against the baseline, mean over the seeds that both have, in percent."""
    base = view.baseline(variant)
    if base is None:
        return "baseline" if variant.is_baseline else NOT_APPLICABLE
    ours, theirs = (_by_seed(view, v, name, "mean") for v in (variant, base))
    cuts = [1 - ours[s] / theirs[s] for s in ours if theirs.get(s)]
    return percent(sum(cuts) / len(cuts)) if cuts else MISSING


def _speedup(record: Record | None, batch_size: int) -> str:
    value = record.get("speedup", batch_size=batch_size) if record else None
    if value is None:
        return NOT_APPLICABLE if record else MISSING
    return f"{value.value:.2f} {_bounds(value, 2)}".rstrip()


def _latency(view: View, variant: Variant, all_of_them: Sequence[Variant], batch_size: int) -> str:
    """Milliseconds a batch; a baseline's are those of its first pair."""
    who = "baseline" if variant.is_baseline else "candidate"
    timed = all_of_them if variant.is_baseline else [variant]
    record = next((r for v in timed if (r := view.first(v, "latency"))), None)
    return _number(record, "latency", 1e3, batch_size=batch_size, who=who)


def _number(record: Record | None, name: str, scale: float, **context: float | str) -> str:
    """A value in the column's unit; "-" where its record does not hold it."""
    if record is None:
        return MISSING
    value = record.get(name, **context)
    return significant(value.value * scale) if value else NOT_APPLICABLE
