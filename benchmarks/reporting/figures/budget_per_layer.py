"""How large a share of heads each layer asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.decisions import per_layer, shown_by_dataset
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Mean s of each layer with the middle 80 % of the test inputs, a panel per data set."""
    shown = shown_by_dataset(view, "s")
    if not shown:
        return style.NotDrawn("no variant with per-input s records yet")
    look = style.looks(view.labels)
    figure, axes = style.panels(1, len(shown), 3.0, sharey=True)
    seeds = 0
    for ax, (dataset, variants) in zip(axes[0], shown.items(), strict=True):
        depth = 0
        for position, variant in enumerate(variants):
            layers = per_layer(view, variant, "s")
            seeds = max(seeds, layers.n_seeds)
            depth = max(depth, len(layers.columns))
            offset = 0.12 * (position - (len(variants) - 1) / 2)
            xs = [i + offset for i in range(len(layers.columns))]
            style_of = look[variant.label]
            for x, column in zip(xs, layers.columns, strict=True):
                low, high = column.quantile(0.1), column.quantile(0.9)
                ax.plot([x, x], [low, high], color=style_of.colour, lw=4, alpha=0.25)
            ax.plot(
                xs, [c.mean() for c in layers.columns],
                color=style_of.colour, marker=style_of.marker, label=variant.label,
            )  # fmt: skip
            for bound in ("s_min", "s_max"):
                value = view.config(variant).get(bound)
                if value is not None:
                    ax.axhline(value, color=style_of.colour, lw=0.8, ls=":")
        ax.set_title(style.wrapped(view.name(dataset)))
        ax.set_xlabel("layer")
        ax.set_xticks(range(depth))
        ax.set_xlim(-0.5, depth - 0.5)
        ax.set_ylim(0, 1)
    axes[0][0].set_ylabel("s (share of heads asked for)")
    style.legend_below(figure, axes[0])
    return style.Drawing(
        figure,
        "Share of heads s that each layer, counted from 0, asks for: mean over all test inputs and "
        f"{counted(seeds, 'seed')}, bars span the middle 80 % of the inputs, dotted lines are the "
        "interval inside which the loss leaves s alone.",
    )
