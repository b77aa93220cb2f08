"""The course of training: loss terms, share of heads asked for, entropy of the scores, schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from benchmarks.reporting.figures import style
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

LOSS, SCHEDULE, TASK = "loss_", "schedule_", "task"
ROWS = ("task loss", "terms added to it", "mean s", "entropy of p / log H", "schedules")


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A column per data set, a row per quantity; lines are means over seeds."""
    shown = {
        dataset: [v for v in variants if not v.is_control and _mean(view, v, "mean_s")]
        for dataset, variants in view.main.items()
    }
    shown = {dataset: variants for dataset, variants in shown.items() if variants}
    if not shown:
        return style.NotDrawn("no training record of a variant with head decisions yet")
    if max(len(_mean(view, v, "mean_s")) for vs in shown.values() for v in vs) < 2:
        return style.NotDrawn("one epoch of training has no course to show")
    look = style.looks(view.labels)
    figure, axes = style.panels(len(ROWS), len(shown), 1.6, sharex=True, sharey="row")
    seeds = 0
    terms = list(dict.fromkeys(t for vs in shown.values() for v in vs for t in _terms(view, v)))
    dashes = dict(zip(terms, style.DASHES, strict=False))
    for column, (dataset, variants) in zip(axes.T, shown.items(), strict=True):
        task, added, share, entropy, schedules = column
        for variant in variants:
            style_of = look[variant.label]
            seeds = max(seeds, len(view.records(variant, "training")))
            _line(view, task, variant, LOSS + TASK, style_of, label=variant.label)
            for term in _terms(view, variant):
                _line(view, added, variant, LOSS + term, style_of, dash=dashes.get(term, "-"))
            _line(view, share, variant, "mean_s", style_of)
            _line(view, entropy, variant, "entropy", style_of)
        names = _schedules(view, schedules, variants)
        task.set_title(style.wrapped(view.name(dataset)))
        task.set_ylim(bottom=0)
        share.set_ylim(0, 1)
        entropy.set_ylim(0, 1.05)
        schedules.set_xlabel("epoch")
        schedules.xaxis.set_major_locator(MaxNLocator(integer=True))
    for ax, name in zip(axes[:, 0], ROWS, strict=True):
        ax.set_ylabel(name)
    style.dash_legend(axes[1][-1], terms, beside=True)
    style.dash_legend(axes[-1][-1], names, beside=True)
    style.legend_below(figure, list(axes[0]))
    return style.Drawing(
        figure,
        f"Training of the variants with head decisions, after each epoch (means over the training inputs "
        f"and {counted(seeds, 'seed')}): task loss, the terms added to it (as weighted and signed in the "
        "sum), share of heads asked for, normalised entropy of the head scores, and the schedules.",
    )


def _names(view: View, variant: Variant, prefix: str) -> list[str]:
    record = view.first(variant, "training")
    return [name for name in record.series if name.startswith(prefix)] if record else []


def _terms(view: View, variant: Variant) -> list[str]:
    """Names of the loss terms beside the task's, without the sum."""
    names = [name.removeprefix(LOSS) for name in _names(view, variant, LOSS)]
    return [name for name in names if name not in {TASK, "total"}]


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


def _schedules(view: View, ax: Axes, variants: Sequence[Variant]) -> list[str]:
    """Draws those of the first variant that has them (a recipe has one set); what they are called."""
    for variant in variants:
        names = _names(view, variant, SCHEDULE)
        if names:
            for name, dash in zip(names, style.DASHES, strict=False):
                ys = _mean(view, variant, name)
                ax.plot(range(1, len(ys) + 1), ys, color=style.INK, ls=dash)
            return [name.removeprefix(SCHEDULE).replace("_", " ") for name in names]
    return []
