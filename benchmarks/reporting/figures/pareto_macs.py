"""Accuracy against whole-model MACs, a panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.fronts import front
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Means over seeds with each seed behind them; the line joins what nothing else beats."""
    shown = {
        dataset: [v for v in variants if _points(view, v)]
        for dataset, variants in view.main.items()
    }
    shown = {dataset: variants for dataset, variants in shown.items() if variants}
    if not shown:
        return style.NotDrawn("no variant has both an accuracy and a MACs record yet")
    look = style.looks(view.labels)
    figure, axes = style.panels(1, len(shown), 3.7)
    seeds = 0
    for ax, (dataset, variants) in zip(axes[0], shown.items(), strict=True):
        means: list[tuple[float, float]] = []
        for variant in variants:
            points = _points(view, variant)
            seeds = max(seeds, len(points))
            means.append(_draw_variant(ax, points, variant.label, look[variant.label]))
        ax.plot(*zip(*front(means), strict=True), color=style.MUTED, lw=0.9, zorder=1)
        ax.set_title(style.wrapped(view.name(dataset)))
        ax.set_xlabel("MACs per test input, whole model (M)")
    axes[0][0].set_ylabel("test accuracy (%)")
    style.legend_below(figure, axes[0])
    if seeds > 1:
        spread = f"large markers are means over {counted(seeds, 'seed')}, small ones single seeds"
    else:
        spread = "one seed, so no spread over seeds is known"
    return style.Drawing(
        figure,
        f"Test accuracy against multiply-accumulates of the whole model (mean over the test inputs, each "
        f"at its own length): {spread}; the grey line joins the variants that no other beats in both.",
    )


def _points(view: View, variant: Variant) -> list[tuple[float, float]]:
    accuracy = view.values(variant, "accuracy", "accuracy")
    macs = view.values(variant, "flops", "macs", stat="mean")
    return [(macs[s].value / 1e6, accuracy[s].value * 100) for s in accuracy if s in macs]


def _draw_variant(
    ax: Axes, points: list[tuple[float, float]], label: str, look: style.Look
) -> tuple[float, float]:
    mean = (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))
    if len(points) > 1:
        ax.plot(
            *zip(*points, strict=True),
            ls="",
            marker=look.marker,
            ms=3,
            color=look.colour,
            alpha=0.45,
        )
    ax.plot(
        *mean,
        ls="",
        marker=look.marker,
        ms=8,
        color=look.colour,
        mec=style.PANEL,
        label=label,
        zorder=3,
    )
    return mean
