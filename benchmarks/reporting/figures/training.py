"""The course of training: loss parts, share of heads asked for, entropy of the scores, schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from benchmarks.reporting.figures import style
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.reporting.view import Variant, View

LOSS, SCHEDULE = "loss_", "schedule_"
TITLES = ("loss parts", "mean s", "entropy of p / log H", "schedules")


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row per data set: losses, mean s, entropy, schedules; lines are means over seeds."""
    shown = {
        dataset: [v for v in variants if not v.is_control and _mean(view, v, "mean_s")]
        for dataset, variants in view.main.items()
    }
    shown = {dataset: variants for dataset, variants in shown.items() if variants}
    if not shown:
        return style.NotDrawn("no training record of a variant with head decisions yet")
    look = style.looks(view.labels)
    figure, axes = style.panels(len(shown), 4, 2.5, sharex=True)
    seeds = 0
    for row, (dataset, variants) in zip(axes, shown.items(), strict=True):
        for variant in variants:
            style_of = look[variant.label]
            seeds = max(seeds, len(view.records(variant, "training")))
            for part, dash in zip(_parts(view, variant), style.DASHES, strict=False):
                _line(view, row[0], variant, LOSS + part, style_of, dash=dash)
            _line(view, row[1], variant, "mean_s", style_of, label=variant.label)
            _line(view, row[2], variant, "entropy", style_of)
        _schedules(view, row[3], variants)
        row[0].set_title(dataset)
        row[1].set_ylim(0, 1)
        row[2].set_ylim(0, 1.03)
    for ax, title in zip(axes[0], TITLES, strict=True):
        ax.set_title(title, loc="right", fontsize=8.5, fontweight="normal")
    for ax in axes[-1]:
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.dash_legend(axes[0][0], _parts(view, next(iter(shown.values()))[0]))
    style.legend_below(figure, [row[1] for row in axes])
    return style.Drawing(
        figure,
        f"Training of the variants with head decisions, after each epoch (means over the training inputs "
        f"and {counted(seeds, 'seed')}): weighted loss parts, share of heads asked for, normalised entropy "
        "of the head scores, and the schedules.",
    )


def _names(view: View, variant: Variant, prefix: str) -> list[str]:
    record = view.first(variant, "training")
    return [name for name in record.series if name.startswith(prefix)] if record else []


def _parts(view: View, variant: Variant) -> list[str]:
    """Names of the loss terms, without their sum."""
    names = [name.removeprefix(LOSS) for name in _names(view, variant, LOSS)]
    return [name for name in names if name != "total"]


def _mean(view: View, variant: Variant, name: str) -> list[float]:
    """Mean over seeds after each epoch; empty where no seed has it."""
    rows = [r.series[name] for r in view.records(variant, "training") if r.series.get(name)]
    rows = [row for row in rows if all(entry is not None for entry in row)]
    return [sum(column) / len(column) for column in zip(*rows, strict=False)]


def _line(
    view: View,
    ax: Axes,
    variant: Variant,
    name: str,
    look: style.Look,
    *,
    dash: str = "-",
    label: str = "",
) -> None:
    ys = _mean(view, variant, name)
    if ys:
        ax.plot(
            range(1, len(ys) + 1), ys,
            color=look.colour, marker=look.marker, ms=4, ls=dash, label=label or None,
        )  # fmt: skip


def _schedules(view: View, ax: Axes, variants: list[Variant]) -> None:
    """The schedules are the same for all variants of a recipe: the first that has them."""
    for variant in variants:
        names = _names(view, variant, SCHEDULE)
        if names:
            for name, dash in zip(names, style.DASHES, strict=False):
                ys = _mean(view, variant, name)
                told = name.removeprefix(SCHEDULE).replace("_", " ")
                ax.plot(range(1, len(ys) + 1), ys, color=style.INK, ls=dash, label=told)
            style.inner_legend(ax)
            return
