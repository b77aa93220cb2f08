"""How sparse the attention of each head of each layer is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reporting.figures import style
from benchmarks.reporting.sparse_layers import MEASURES, QUERIES
from benchmarks.reporting.students import teachers
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

MEASURE = "concentration"


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row per teacher, a panel per kind of queries; mean over seeds."""
    maps = [(teacher, found) for teacher in teachers(view) if (found := _maps(view, teacher))]
    if not maps:
        return style.NotDrawn("no sparsity record yet")
    columns = max(len(found) for _, found in maps)
    figure, axes = style.panels(len(maps), columns, 1.75)
    image = None
    for row, (teacher, found) in zip(axes, maps, strict=True):
        for ax in row[len(found) :]:
            ax.set_visible(False)
        for ax, (queries, values) in zip(row, found.items(), strict=False):
            image = ax.imshow(values.T, vmin=0, vmax=1, cmap="viridis", aspect="auto")
            ax.grid(visible=False)
            ax.set_xticks(range(values.shape[0]))
            ax.set_yticks([])
            ax.set_title(style.wrapped(f"{view.called(teacher)}, {QUERIES[queries]}"))
            ax.set_xlabel("layer, counted from 0")
        row[0].set_ylabel("heads, sparsest\non top")
    if image is not None:
        figure.colorbar(image, ax=axes, label=MEASURES[MEASURE], shrink=0.8)
    seeds = max(len(view.records(teacher, "sparsity")) for teacher, _ in maps)
    return style.Drawing(
        figure,
        "Sparsity of the attention weights by layer and head, as 1 - entropy / log N over the keys (0: "
        "uniform, 1: one key), mean over validation inputs and "
        f"{counted(seeds, 'seed')}; for all queries and for the class token's alone; heads stand in order "
        "of sparsity in each layer.",
    )


def _maps(view: View, teacher: Variant) -> dict[str, NDArray[np.float64]]:
    found = {queries: _map(view, teacher, queries) for queries in QUERIES}
    return {queries: values for queries, values in found.items() if values is not None}


def _map(view: View, teacher: Variant, queries: str) -> NDArray[np.float64] | None:
    """(depth, heads), heads of each seed from the sparsest down, so that their mean means something."""
    found = [
        -np.sort(-np.asarray(record.series[f"{MEASURE}_{queries}"], dtype=np.float64), axis=1)
        for record in view.records(teacher, "sparsity")
        if f"{MEASURE}_{queries}" in record.series
    ]
    return np.mean(found, axis=0) if found else None
