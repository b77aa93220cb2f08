"""What the attention of each layer of a teacher is worth, before anything is replaced."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from benchmarks.reporting.sparse_layers import MEASURES
from benchmarks.reporting.students import deletions, per_layer, teachers
from benchmarks.reporting.text import (
    NOT_APPLICABLE,
    counted,
    gap_text,
    layers_text,
    points,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.reporting.students import Deletion
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

KEPT = {
    "top_k_overlap": "of these, among the most attended",
    "auprc": "AUPRC",
    "chance": "both by chance",
}
"""Values on the patches that a halting teacher keeps, and their columns."""
SPARSITY_NOTE = (
    "Sparsity of the attention weights: mean over validation inputs and heads, and over all queries unless "
    "the column says class token; 0 is attention spread evenly over all N tokens and 1 all of it on one. "
    "Evenly spread, the top 10 % of the keys have a mass of 0.1; keys under 1/N are the share of keys with "
    "less than an even weight."
)
KEPT_NOTE = (
    "Patches kept: share of the patches that a layer computes; beside it, what share of them is among as "
    "many patches that the class token attends to most in the teacher that halts nothing, the average "
    "precision (AUPRC) of finding them by that attention, and what both come to by chance."
)


def layers(view: View) -> str:
    """A table for each teacher that was looked at; empty where there is none."""
    shown = [(teacher, part) for teacher in teachers(view) if (part := _teacher(view, teacher))]
    if not shown:
        return ""
    parts = [part for _, part in shown]
    note = _note(view, [teacher for teacher, _ in shown])
    return "\n\n".join(["## What each layer's attention is worth", *parts, note])


def which_matter(view: View, teacher: Variant) -> str:
    """In one sentence, the layers whose deletion costs the margin; empty where none was deleted."""
    singles = [d for d in deletions(view, teacher).values() if not d.group]
    if not singles:
        return ""
    matter = [d.layers[0] for d in singles if d.informative]
    rest = [d.layers[0] for d in singles if not d.informative]
    margin = points(singles[0].margin).lstrip("+")
    text = (
        f"Deleting the attention of one layer of `{view.called(teacher)}`{view.size_of(teacher)}, "
        f"without any training, costs {margin} points or more of validation accuracy in "
    )
    unclear = layers_text([d.layers[0] for d in singles if d.unclear])
    open_ = (
        "" if unclear == "none" else f" The interval holds {margin} points for {unclear}: unclear."
    )
    if not rest:
        return f"{text}each of its {len(singles)} layers.{open_}"
    text += f"{len(matter)} of its {len(singles)} layers"
    text += f" ({layers_text(matter)})" if matter else ""
    noun = "layer" if len(rest) == 1 else "layers"
    return (
        f"{text}; {noun} {layers_text(rest)} can be done without, so what replaces "
        f"{'it' if len(rest) == 1 else 'one of them'} can show nothing.{open_}"
    )


def _teacher(view: View, teacher: Variant) -> str:
    deleted = deletions(view, teacher)
    columns = _sparsities(view, teacher)
    depth = max(
        [1 + max(d.layers) for d in deleted.values()] + [len(v) for v in columns.values()],
        default=0,
    )
    if not depth:
        return ""
    rows = [[str(layer), *(_plain(v, layer) for v in columns.values())] for layer in range(depth)]
    headers = ["layer", *columns]
    if deleted:
        headers[1:1] = ["lost by deletion (points)", "informative"]
        for layer, row in enumerate(rows):
            row[1:1] = _deleted(deleted.get((layer,)))
        rows += [
            [f"{layers_text(d.layers)} ({d.group})", *_deleted(d), *[NOT_APPLICABLE] * len(columns)]
            for d in deleted.values()
            if d.group
        ]
    heading = f"### `{view.called(teacher)}` on {view.inputs_of(teacher)}"
    parts = [heading, which_matter(view, teacher), _ratios(view, teacher), table(headers, rows)]
    return "\n\n".join(part for part in parts if part)


def _sparsities(view: View, teacher: Variant) -> dict[str, list[float]]:
    """The columns that the teacher has, by title."""
    columns = {
        name: per_layer(view, teacher, "sparsity", "sparsity", measure=measure, queries="all")
        for measure, name in MEASURES.items()
    }
    columns["1 - normalised entropy, class token"] = per_layer(
        view, teacher, "sparsity", "sparsity", measure="concentration", queries="class"
    )
    columns["patches kept"] = per_layer(view, teacher, "sparsity", "keep_ratio", tokens="patches")
    for value, name in KEPT.items():
        columns[name] = per_layer(view, teacher, "sparsity", value)
    return {name: values for name, values in columns.items() if values}


def _ratios(view: View, teacher: Variant) -> str:
    """The share of patches that a halting teacher was to keep, and what came of it."""
    if not teacher.halts_tokens:
        return ""
    wanted = view.config(teacher)["keep_ratio"]
    series = "schedule_calibrated_keep_ratio"
    first = [
        record.series[series][0]
        for record in view.records(teacher, "training")
        if record.series.get(series)
    ]
    after = view.mean(teacher, "sparsity", "keep_ratio", tokens="patches")
    told = [f"Patches kept, mean over layers: {wanted:.2f} wanted"]
    told += [f"{sum(first) / len(first):.2f} after calibration"] if first else []
    told += [f"{after:.2f} reached after fine-tuning"] if after is not None else []
    return ", ".join(told) + "."


def _note(view: View, shown: Sequence[Variant]) -> str:
    seeds = max(len(view.records(v, m)) for v in shown for m in ("deletion", "sparsity"))
    told = [f"Layers are counted from 0; means over {counted(seeds, 'seed')}."]
    records = [view.records(v, "deletion") for v in shown]
    first = next((found[0] for found in records if found), None)
    if first is not None and first.data is not None:
        over = "seeds" if max(map(len, records)) > 1 else "inputs"
        told.append(
            f"Deletion: validation accuracy lost on {first.data.n:,} inputs when the attention of these "
            f"layers adds nothing and nothing is trained (95 % interval over {over}); what loses less than "
            f"{points(float(first.info['margin'])).lstrip('+')} points, our margin, is uninformative, "
            "and unclear if the interval holds the margin."
        )
    if any(view.first(v, "sparsity") for v in shown):
        told.append(SPARSITY_NOTE)
    if any(v.halts_tokens for v in shown):
        told.append(KEPT_NOTE)
    return " ".join(told)


def _deleted(deletion: Deletion | None) -> list[str]:
    if deletion is None:
        return [NOT_APPLICABLE] * 2
    tells = "yes" if deletion.informative else "**no**"
    return [gap_text(deletion.drop), f"{tells}, unclear" if deletion.unclear else tells]


def _plain(values: Sequence[float], layer: int) -> str:
    known = layer < len(values) and isfinite(values[layer])
    return f"{values[layer]:.3f}" if known else NOT_APPLICABLE
