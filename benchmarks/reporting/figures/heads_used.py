"""How many heads the inputs really use, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.decisions import per_layer, shown_by_dataset
from benchmarks.reporting.text import pooled

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Histograms of k; a row per data set, a column per variant, a colour per layer."""
    shown = shown_by_dataset(view, "k")
    if not shown:
        return style.NotDrawn("no variant with per-input k records yet")
    labels = list(dict.fromkeys(v.label for variants in shown.values() for v in variants))
    figure, axes = style.panels(len(shown), len(labels), 2.3, sharex=True, sharey=True)
    seeds = 0
    for row, (dataset, variants) in zip(axes, shown.items(), strict=True):
        by_label = {v.label: v for v in variants}
        for ax, label in zip(row, labels, strict=True):
            ax.set_title(style.wrapped(f"{view.name(dataset)}: {label}"), fontsize=8.5)
            if label not in by_label:
                ax.text(0.5, 0.5, "no records", ha="center", transform=ax.transAxes)
                continue
            variant = by_label[label]
            layers = per_layer(view, variant, "k")
            seeds = max(seeds, layers.n_seeds)
            n_heads = int(
                view.config(variant).get("n_heads") or max(c.max() for c in layers.columns)
            )
            depth = len(layers.columns)
            width = 0.84 / depth
            colours = style.ramp(depth)
            for i, column in enumerate(layers.columns):
                shares = column.value_counts(normalize=True) * 100
                heads = range(1, n_heads + 1)
                ax.bar(
                    [k + width * (i - (depth - 1) / 2) for k in heads],
                    [float(shares.get(k, 0.0)) for k in heads],
                    width=width, color=colours[i], label=f"layer {i}",
                )  # fmt: skip
            ax.set_xticks(range(1, n_heads + 1))
            ax.grid(visible=False, axis="x")
        row[0].set_ylabel("inputs (%)")
    for ax in axes[-1]:
        ax.set_xlabel("heads used, k")
    style.legend_below(figure, list(axes.flat), columns=6)
    return style.Drawing(
        figure,
        "Number of heads k that each layer, counted from 0, computes: share of all test inputs, "
        f"{pooled(seeds)}.",
    )
