"""Trained sweeps along an axis, as one small table a sweep and data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.sections.validation import on_validation_only, validation_table
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    counted,
    percent,
    shown,
    significant,
    table,
)

if TYPE_CHECKING:
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


def studies(view: View) -> str:
    """A heading and a table for each; empty where the suite has no such sweep."""
    parts = []
    for (sweep, dataset), variants in view.studies.items():
        heading = f"## Sweep `{sweep}` on {view.name(dataset)}"
        if on_validation_only(view, variants):
            parts.append(f"{heading}\n\n{validation_table(view, variants)}")
            continue
        axes = list(dict.fromkeys(name for v in variants for name in v.axes))
        seeds = max(len(v.points) for v in variants)
        note = (
            ": a single run each, so differences of a point or so mean nothing"
            if seeds == 1
            else ""
        )
        rows = [
            _row(view, variant, axes) for variant in sorted(variants, key=lambda v: _order(v, axes))
        ]
        named = [
            "image size (pixels)" if name == "max_length" and variants[0].reads_images else name
            for name in axes
        ]
        columns = [*named, "variant", "accuracy (%)"]
        told = list(range(len(columns)))
        if any(v.decides_heads for v in variants):
            told += [len(columns), len(columns) + 1]
        if view.plans(variants, "flops"):
            told.append(len(columns) + 2)
        headers, *rows = [
            [row[column] for column in told]
            for row in ([*columns, "mean k (heads)", "mean s", "MACs per input (M)"], *rows)
        ]
        align = "r" * len(axes) + "l" + "r" * (len(headers) - len(axes) - 1)
        parts.append(
            f"{heading}\n\n{counted(seeds, 'seed')}{note}.\n\n" + table(headers, rows, align=align)
        )
    return "\n\n".join(parts)


def _row(view: View, variant: Variant, axes: list[str]) -> list[str]:
    accuracy = view.mean(variant, "accuracy", "accuracy")
    k, s = (view.mean(variant, "accuracy", name) for name in ("mean_k", "mean_s"))
    macs = view.mean(variant, "flops", "macs", stat="mean")
    absent = NOT_APPLICABLE if accuracy is not None else MISSING
    unmeasured = MISSING if view.plans([variant], "flops") else NOT_APPLICABLE
    return [
        *(shown(variant.axes.get(name)) for name in axes),
        f"`{variant.label}`",
        percent(accuracy) if accuracy is not None else MISSING,
        f"{k:.2f} of {view.config(variant).get('n_heads')}" if k is not None else absent,
        f"{s:.3f}" if s is not None else absent,
        significant(macs / 1e6) if macs is not None else unmeasured,
    ]


def _order(variant: Variant, axes: list[str]) -> list[tuple[bool, float, str]]:
    values = [variant.axes.get(name) for name in axes]
    return [
        (v is None, float(v), "") if isinstance(v, (int, float)) else (v is None, 0.0, str(v))
        for v in values
    ]
