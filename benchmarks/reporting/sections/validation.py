"""Studies that are judged on the validation split alone: how a recipe is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.reporting.figures.axes import TITLES
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    bounds,
    counted,
    percent,
    shown,
    table,
)

if TYPE_CHECKING:
    from benchmarks.records import Value
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

Validated = list[tuple["Variant", "Value"]]


def on_validation_only(view: View, variants: Sequence[Variant]) -> bool:
    """Whether the suite asks for these variants' training, and never for their test accuracy."""
    return view.plans(variants, "training") and not view.plans(variants, "accuracy")


def validated(view: View, variants: Sequence[Variant]) -> Validated:
    """First-seed validation accuracies; none where the test split is read too."""
    if not on_validation_only(view, variants):
        return []
    found = []
    for variant in variants:
        record = view.first(variant, "training")
        value = record.get("validation_accuracy") if record else None
        if value is not None:
            found.append((variant, value))
    return found


def best(found: Validated) -> tuple[Variant, Value]:
    """The highest; of equals the first."""
    return max(found, key=lambda pair: pair[1].value)


def validation_table(view: View, variants: Sequence[Variant]) -> str:
    """Two axes cross, with a table per variant; otherwise one row per setting. With its note."""
    found = validated(view, variants)
    values = {v.group_id: value for v, value in found}
    top = best(found)[1].value if found else None
    axes = list(dict.fromkeys(name for v in variants for name in v.axes))
    if len(axes) == 2:
        labels = list(dict.fromkeys(v.label for v in variants))
        parts = [
            _crossed([v for v in variants if v.label == label], axes, values, top, label)
            for label in labels
        ]
    else:
        rows = [
            [
                *(shown(v.axes.get(name)) for name in axes),
                f"`{v.label}`",
                _cell(values.get(v.group_id), top),
                bounds(values[v.group_id], 1, 100) if v.group_id in values else MISSING,
            ]
            for v in variants
        ]
        headers = [*axes, "variant", "validation accuracy (%)", "95 % interval (%)"]
        parts = [table(headers, rows, align="r" * len(axes) + "lrr")]
    return "\n\n".join([*parts, _note(view, variants, found)])


def _crossed(
    variants: Sequence[Variant],
    axes: Sequence[str],
    values: dict[str, Value],
    top: float | None,
    label: str,
) -> str:
    down, across = axes
    at = {(v.axes.get(down), v.axes.get(across)): v for v in variants}
    rows_at, columns_at = (sorted({key[i] for key in at}, key=_order) for i in (0, 1))
    rows = []
    for y in rows_at:
        cells = [
            _cell(values.get(at[y, x].group_id), top) if (y, x) in at else NOT_APPLICABLE
            for x in columns_at
        ]
        rows.append([shown(y), *cells])
    headers = [
        f"`{label}`: {TITLES.get(down, down)}",
        *[f"{TITLES.get(across, across)} {shown(x)} (%)" for x in columns_at],
    ]
    return table(headers, rows, align="r" * len(headers))


def _order(value: object) -> tuple[bool, float, str]:
    number = isinstance(value, (int, float))
    return (not number, float(value) if isinstance(value, (int, float)) else 0.0, str(value))


def _cell(value: Value | None, top: float | None) -> str:
    if value is None:
        return MISSING
    text = percent(value.value)
    return f"**{text}**" if value.value == top else text


def _note(view: View, variants: Sequence[Variant], found: Validated) -> str:
    seeds = sorted({r.seed for v in variants for r in view.records(v, "training")})
    if not found:
        return "Nothing of this study is measured yet."
    value = best(found)[1]
    n = f"{value.n:,} inputs" if value.n else "the inputs"
    parts = [f"Validation accuracy on {n}, seed {seeds[0]}, the highest in bold."]
    if value.low is not None and value.high is not None:
        parts.append(
            f"Its 95 % Wilson interval is {bounds(value, 1, 100)} %: settings inside it are not told "
            "apart by these inputs."
        )
    if len(seeds) > 1:
        parts.append(f"The first of {counted(len(seeds), 'seed')}.")
    parts.append("Recipes are chosen on numbers like these; the test split has no part in it.")
    return " ".join(parts)
