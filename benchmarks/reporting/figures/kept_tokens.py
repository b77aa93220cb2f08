"""Which patches of a few images a halting teacher computed, and for how many layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reporting.figures import style
from benchmarks.reporting.students import teachers

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row per teacher that halts, a panel per image; first seed."""
    rows = []
    for teacher in teachers(view):
        record = view.first(teacher, "sparsity")
        if record is not None and record.series.get("kept_layers"):
            rows.append((teacher, record.series["kept_layers"], view.config(teacher)["depth"]))
    if not rows:
        return style.NotDrawn("no sparsity record of a teacher that halts tokens yet")
    columns = max(len(images) for _, images, _ in rows)
    figure, axes = style.panels(len(rows), columns, 1.35)
    image = None
    for line, (teacher, images, depth) in zip(axes, rows, strict=True):
        for ax in line:
            ax.set_xticks([])
            ax.set_yticks([])
            ax.grid(visible=False)
        for ax, shown in zip(line, images, strict=False):
            side = round(len(shown["layers"]) ** 0.5)
            values = np.asarray(shown["layers"], dtype=np.float64).reshape(side, side)
            image = ax.imshow(values / depth, vmin=0, vmax=1, cmap="viridis")
            ax.set_xlabel(f"row {shown['row_id']}", fontsize=6)
        line[0].set_ylabel(teacher.label)
    if image is not None:
        figure.colorbar(image, ax=axes, label="layers that computed\nthe patch (share)", shrink=0.9)
    return style.Drawing(
        figure,
        "Share of the layers that computed each patch of a few validation images (named by their row), "
        "first seed: bright patches ran through all layers, dark ones were dropped early; the images "
        "themselves are not shown: no report carries pixels.",
    )
