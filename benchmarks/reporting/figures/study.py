"""Accuracy and the share of heads asked for, along the axes of a trained sweep (depth, data ...)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.axes import TITLES, lines, numeric
from benchmarks.reporting.text import counted, listing

if TYPE_CHECKING:
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


SHOWN = (("accuracy", 100.0), ("mean_s", 1.0))
"""From top to bottom: values, and what they are multiplied by."""


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Accuracy above, mean s below if a model has one; a column per data set and axis.

    Dashes tell the other axes.
    """
    columns = []
    for (_, dataset), variants in view.studies.items():
        measured = [v for v in variants if view.values(v, "accuracy", "accuracy")]
        columns += [(dataset, axis, lines(view, measured, axis)) for axis in numeric(measured)]
    columns = [c for c in columns if any(len(line) > 1 for line in c[2].values())]
    if not columns:
        return style.NotDrawn(
            "no trained sweep along an axis has accuracy records at two values yet"
        )
    look = style.looks(view.labels)
    measured = [v for *_, found in columns for line in found.values() for _, v in line]
    budgets = any(view.mean(v, "accuracy", "mean_s") is not None for v in measured)
    figure, axes = style.panels(1 + budgets, len(columns), 2.7, sharex="col", sharey="row")
    seeds: set[int] = set()
    for panels, (dataset, axis, found) in zip(axes.T, columns, strict=True):
        rests = list(dict.fromkeys(rest for _, rest in found))
        for (label, rest), line in found.items():
            dash = style.DASHES[rests.index(rest) % len(style.DASHES)]
            for ax, (value, scale) in zip(panels, SHOWN, strict=False):
                points = _points(view, line, value, scale)
                if points:
                    ax.plot(
                        *zip(*points, strict=True), color=look[label].colour,
                        marker=look[label].marker, ms=5, ls=dash, label=label,
                    )  # fmt: skip
            seeds |= {len(view.values(v, "accuracy", "accuracy")) for _, v in line}
        style.dash_legend(panels[0], [rest for rest in rests if rest])
        panels[0].set_title(style.wrapped(view.name(dataset)))
        panels[-1].set_xlabel(TITLES.get(axis, axis))
        panels[-1].set_xticks(sorted({x for line in found.values() for x, _ in line}))
    axes[0][0].set_ylabel("test accuracy (%)")
    if budgets:
        axes[1][0].set_ylabel("mean s (share of heads)")
    style.legend_below(figure, list(axes[0]))
    if seeds == {1}:
        how = "a single seed, so no spread over seeds is known"
    else:
        how = f"means over {min(seeds)} to {counted(max(seeds), 'seed')}"
    along = listing([TITLES.get(axis, axis) for _, axis, _ in columns])
    on = listing(list(dict.fromkeys(view.name(dataset) for dataset, *_ in columns)))
    return style.Drawing(
        figure,
        f"Test accuracy{' and mean share of heads asked for' if budgets else ''} against {along} on {on}: "
        f"{how}.",
    )


def _points(
    view: View, line: list[tuple[float, Variant]], value: str, scale: float
) -> list[tuple[float, float]]:
    found = [(x, view.mean(v, "accuracy", value)) for x, v in line]
    return [(x, y * scale) for x, y in found if y is not None]
