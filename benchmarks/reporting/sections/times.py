"""The table of a data set's time, memory and energy, and how to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    bounds,
    listing,
    significant,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.records import Record, Value
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

SAME_PEAK = 0.001
"""Peaks at most this far apart (share) are called the same; a mask of heads takes a few bytes."""


def time_table(view: View, variants: Sequence[Variant]) -> str:
    """Promised and realised speed-up, peak memory and energy of the one seed that is timed."""
    sizes = sorted({view.batch_sizes[0], view.batch_sizes[-1]})
    largest = sizes[-1]
    rows = []
    for variant in variants:
        memory, carbon = view.first(variant, "memory"), view.first(variant, "carbon")
        promised = view.promised(variant)
        if variant.is_baseline:
            speedups = ["baseline", *[NOT_APPLICABLE] * len(sizes)]
        else:
            speedups = [f"{promised:.2f}" if promised is not None else MISSING]
            speedups += [_speedup(view, variant, size) for size in sizes]
        rows.append(
            [
                f"`{variant.label}`",
                *speedups,
                _latency(view, variant, variants, largest),
                *(
                    _number(record, name, scale, **context)
                    if record is not None or view.plans([variant], meter)
                    else NOT_APPLICABLE
                    for record, meter, name, scale, context in (
                        (memory, "memory", "peak_memory", 1 / 2**20, {"batch_size": largest}),
                        (carbon, "carbon", "energy", 1.0, {}),
                    )
                ),
            ]
        )
    kept = [view.asks(variants, meter) for meter in ("memory", "carbon")]
    rows = [
        [*row[:-2], *(c for c, keep in zip(row[-2:], kept, strict=True) if keep)] for row in rows
    ]
    measured = [r for v in variants if (r := view.first(v, "carbon"))]
    told = [*energy_sources(view, variants), ram_share(measured), "single pass" if measured else ""]
    source = "".join(f"; {text}" for text in told if text)
    headers = [
        "variant",
        "speed-up promised by MACs (x)",
        *[f"realised, batch {size} (x)" for size in sizes],
        f"latency, batch {largest} (ms)",
    ]
    last = [f"peak memory, batch {largest} (MiB)", f"energy per 1000 inputs (J{source})"]
    headers += [title for title, keep in zip(last, kept, strict=True) if keep]
    return table(headers, rows)


def time_note(view: View, variants: Sequence[Variant]) -> str:
    """How the table's numbers were made, and why two of them may not go together."""
    timed = next((r for v in variants if (r := view.first(v, "latency"))), None)
    measured = any(view.first(v, "carbon") for v in variants)
    energy = "Energy is of a single pass, so it has no interval." if measured else ""
    if timed is None:
        told = ["Time, memory and energy are measured on the first seed's weights only.", energy]
        return " ".join(filter(None, told))
    seed = timed.seed if timed.weights_seed is None else timed.weights_seed
    processes = timed.info.get("processes", "several")
    speed = (
        f"Measured on the weights of seed {seed} only; the promise is the ratio of MACs on the very "
        "inputs that were timed. Realised speed-up: "
        f"baseline and variant in alternation, {processes} fresh processes, 95 % t interval over "
        "process means; above 1 is faster. Latency is of one forward pass of a batch, for "
        "orientation: a median, and for the baseline that of its first pair. A ratio is a mean of log "
        "ratios within a pair, so it need not be the quotient of two latencies."
    )
    memory = ""
    if view.asks(variants, "memory"):
        memory = "Peak memory is of activations and scratch, without weights."
    equal = _equal_peaks(view, variants)
    return " ".join(filter(None, [speed, _above_promise(view, variants), memory, equal, energy]))


def _above_promise(view: View, variants: Sequence[Variant]) -> str:
    """Where more time is saved than work, how this can be."""
    told = []
    for variant in variants:
        sizes = []
        for size in view.batch_sizes:
            value, promised = speedup(view, variant, size), view.promised(variant, size)
            low = value.low if value else None
            if low is not None and promised is not None and low > promised:
                sizes.append(str(size))
        if sizes:
            told.append(f"`{variant.label}` at batch {listing(sizes, by=' and ')}")
    if not told:
        return ""
    return (
        f"The whole interval lies above the promise for {listing(told)}: what does not run also "
        "saves softmax, memory traffic and operator calls, which MACs do not count."
    )


def _equal_peaks(view: View, variants: Sequence[Variant]) -> str:
    """Why no memory is saved, where no variant that selects heads saves any."""
    ratios = []
    for variant in variants:
        base = view.baseline(variant)
        if base is None or view.mean(variant, "accuracy", "mean_k") is None:
            continue
        ours, theirs = (_peak(view, v) for v in (variant, base))
        if ours is None or theirs is None:
            return ""
        ratios.append(ours / theirs)
    if not ratios or any(abs(ratio - 1) > SAME_PEAK for ratio in ratios):
        return ""
    return (
        f"Every variant that selects heads has the baseline's peak to within {SAME_PEAK * 100:g} %: it "
        "is reached in the feed-forward part, which runs whole, so skipping heads lowers no peak."
    )


def _peak(view: View, variant: Variant) -> float | None:
    record = view.first(variant, "memory")
    value = record.get("peak_memory", batch_size=view.batch_sizes[-1]) if record else None
    return value.value if value else None


def ram_share(records: Iterable[Record]) -> str:
    """E.g. "71 % of it for RAM"; empty where no record says."""
    shares = [r.info["ram_share"] for r in records if r.info.get("ram_share") is not None]
    if not shares:
        return ""
    ends = dict.fromkeys(f"{share:.0%}".replace("%", "") for share in (min(shares), max(shares)))
    return f"{' to '.join(ends)} % of it for RAM"


def energy_sources(view: View, variants: Sequence[Variant]) -> list[str]:
    """Where the energy figures come from, as the records say it."""
    found = (view.first(variant, "carbon") for variant in variants)
    return sorted({str(r.info["energy_source"]) for r in found if r and "energy_source" in r.info})


def speedup(view: View, variant: Variant, batch_size: int) -> Value | None:
    """Realised, over the baseline, of the seed that was timed."""
    record = view.first(variant, "latency")
    return record.get("speedup", batch_size=batch_size) if record else None


def _speedup(view: View, variant: Variant, batch_size: int) -> str:
    value = speedup(view, variant, batch_size)
    if value is None:
        return NOT_APPLICABLE if view.first(variant, "latency") else MISSING
    return f"{value.value:.2f} {bounds(value)}".rstrip()


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
