"""How strongly s follows each measure of complexity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.complexity import NAMES, Correlation, correlations
from benchmarks.reporting.figures import style

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Rank correlation with its interval, a row a measure, a panel a data set."""
    shown: dict[str, list[Correlation]] = {}
    for dataset, variants in view.main.items():
        found = [c for variant in variants for c in correlations(view, variant)]
        if found:
            shown[dataset] = found
    if not shown:
        return style.NotDrawn("no inputs with both s and measures of complexity yet")
    look = style.looks(view.labels)
    figure, axes = style.panels(len(shown), 1, 2.6, sharex=True)
    for ax, (dataset, found) in zip(axes[:, 0], shown.items(), strict=True):
        measures = list(dict.fromkeys(c.measure for c in found))
        labels = list(dict.fromkeys(c.variant.label for c in found))
        for c in found:
            at = -measures.index(c.measure) - 0.6 * (labels.index(c.variant.label) + 0.5) / len(
                labels
            )
            low, high = c.whole.estimate - c.whole.low, c.whole.high - c.whole.estimate
            style_of = look[c.variant.label]
            ax.errorbar(
                [c.whole.estimate], [at], xerr=[[low], [high]],
                color=style_of.colour, marker=style_of.marker, ms=5, lw=1.2, ls="",
                label=c.variant.label if c.measure == measures[0] else None,
            )  # fmt: skip
        ax.axvline(0, lw=0.8, color="grey")
        ax.set_yticks([-0.3 - i for i in range(len(measures))])
        ax.set_yticklabels([NAMES.get(m, m) for m in measures])
        ax.set_xlim(-1, 1)
        ax.set_title(style.wrapped(view.name(dataset)))
    axes[-1][0].set_xlabel("rank correlation with s")
    style.legend_below(figure, axes[:, 0])
    return style.Drawing(
        figure,
        "Spearman's correlation of s, mean over layers, with measures of the input's complexity, and its "
        "95 % interval (over seeds; with one seed over inputs).",
    )
