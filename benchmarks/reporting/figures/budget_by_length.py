"""Whether longer inputs ask for more heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.decisions import columns_of, frames, shown_by_dataset
from benchmarks.reporting.text import pooled

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

BINS = 8


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Mean s (over layers) in bins of equal numbers of inputs by length, a panel per data set."""
    shown = shown_by_dataset(view, "s")
    if not shown:
        return style.NotDrawn("no variant with per-input s records yet")
    look = style.looks(view.labels)
    figure, axes = style.panels(1, len(shown), 3.0, sharey=True)
    seeds = 0
    for ax, (dataset, variants) in zip(axes[0], shown.items(), strict=True):
        for variant in variants:
            inputs, n_seeds = _inputs(view, variant)
            seeds = max(seeds, n_seeds)
            bins = _binned(inputs)
            style_of = look[variant.label]
            ax.fill_between(
                bins["length"], bins["low"], bins["high"], color=style_of.colour, alpha=0.15, lw=0
            )
            ax.plot(
                bins["length"], bins["mean"],
                color=style_of.colour, marker=style_of.marker, ms=5, label=variant.label,
            )  # fmt: skip
        ax.set_title(style.wrapped(view.name(dataset)))
        ax.set_xlabel("input length (tokens, after cutting)")
        ax.set_ylim(0, 1)
    axes[0][0].set_ylabel("s, mean of layers")
    style.legend_below(figure, axes[0])
    return style.Drawing(
        figure,
        f"Share of heads s, mean over layers, against the length of the test input, in up to {BINS} bins "
        f"of about equally many inputs, {pooled(seeds)}: bin means, bands span the "
        "middle 80 % of the inputs.",
    )


def _inputs(view: View, variant: Variant) -> tuple[pd.DataFrame, int]:
    import pandas as pd

    seeds = frames(view, variant, "s")
    parts = [
        pd.DataFrame({"length": f["length"], "s": f[columns_of(f, "s")].mean(axis=1)})
        for f in seeds
    ]
    return pd.concat(parts, ignore_index=True), len(seeds)


def _binned(inputs: pd.DataFrame) -> pd.DataFrame:
    """Length, mean and 10 % and 90 % quantiles of s in each bin; equal lengths share a bin."""
    import pandas as pd

    lengths = inputs["length"]
    lowest, *above = sorted(set(lengths.quantile([i / BINS for i in range(BINS + 1)])))
    bins = pd.cut(lengths, [lowest - 1, *above]) if above else lengths
    grouped = inputs.groupby(bins, observed=True)
    return pd.DataFrame(
        {
            "length": grouped["length"].mean(),
            "mean": grouped["s"].mean(),
            "low": grouped["s"].quantile(0.1),
            "high": grouped["s"].quantile(0.9),
        }
    )
