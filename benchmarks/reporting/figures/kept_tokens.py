"""Which patches of a few images a halting teacher computed, and for how many layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.reporting.figures import style
from benchmarks.reporting.pictures import pictures
from benchmarks.reporting.students import teachers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


@dataclass(frozen=True)
class _Row:
    """A line of panels, one an image: the images themselves, or a teacher's maps."""

    name: str
    panels: Sequence[npt.NDArray[Any]]
    row_ids: Sequence[int]


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row per teacher that halts, a panel per image; the images above, where they may be shown."""
    rows: list[_Row] = []
    above: tuple[Any, ...] = ()
    pictured = False
    for teacher in teachers(view):
        if (maps := _maps(view, teacher)) is None:
            continue
        seen = (teacher.dataset, tuple(maps.row_ids), teacher.points[0].point.max_length)
        if seen != above:
            above = seen
            found = pictures(view, teacher, maps.row_ids)
            if found.keys() >= set(maps.row_ids):
                pictured = True
                name = view.inputs_of(teacher)
                rows.append(_Row(name, [found[row] for row in maps.row_ids], maps.row_ids))
        rows.append(maps)
    if not rows:
        return style.NotDrawn("no sparsity record of a teacher that halts tokens yet")
    figure, axes = style.panels(len(rows), max(len(row.panels) for row in rows), 1.05)
    image = None
    for line, row, below in zip(axes, rows, [*rows[1:], None], strict=True):
        named = below is None or below.row_ids != row.row_ids
        for ax in line:
            ax.set_xticks([])
            ax.set_yticks([])
            ax.grid(visible=False)
        for ax, panel, row_id in zip(line, row.panels, row.row_ids, strict=False):
            if panel.ndim == 2:
                image = ax.imshow(panel, vmin=0, vmax=1, cmap="viridis")
            else:
                ax.imshow(panel, cmap="gray", vmin=0, vmax=255)
            if named:
                ax.set_xlabel(f"row {row_id}", fontsize=6)
        line[0].set_ylabel(style.wrapped(row.name, 16))
    if image is not None:
        figure.colorbar(image, ax=axes, label="layers that computed\nthe patch (share)", shrink=0.9)
    return style.Drawing(
        figure,
        "Share of the layers that computed each patch of a few validation images (named by their row), "
        "first seed: bright patches ran through all layers, dark ones were dropped early; "
        + (
            "above them the images, as the model gets them."
            if pictured
            else "the images themselves are left out, and `frugalbench report` shows them where the data are."
        ),
    )


def _maps(view: View, teacher: Variant) -> _Row | None:
    record = view.first(teacher, "sparsity")
    if record is None or not record.series.get("kept_layers"):
        return None
    shown = record.series["kept_layers"]
    depth = view.config(teacher)["depth"]
    side = round(len(shown[0]["layers"]) ** 0.5)
    maps = [np.asarray(x["layers"], dtype=np.float64).reshape(side, side) / depth for x in shown]
    return _Row(view.called(teacher), maps, [x["row_id"] for x in shown])
