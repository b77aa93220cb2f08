"""Accuracy lost by replacing each layer's attention, over how sparse that attention is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.reporting.figures import style
from benchmarks.reporting.sparse_layers import MEASURES
from benchmarks.reporting.students import deletions, drop, per_layer, students
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

DELETION = "deleted, untrained"
DODGE = 0.14
"""Layers by which the mixers of one layer stand apart."""


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A column per teacher: above, accuracy lost; below, the sparsity of the same layers."""
    singles = [s for s in students(view) if len(s.replaced) == 1 and drop(view, s) is not None]
    if not singles:
        return style.NotDrawn("no student with a single replaced layer has an accuracy record yet")
    groups = list(dict.fromkeys(s.teacher.group_id for s in singles))
    mixers = list(dict.fromkeys(s.name for s in singles))
    look = style.looks([DELETION, *mixers])
    sparse = any(view.records(s.teacher, "sparsity") for s in singles)
    figure, axes = style.panels(1 + sparse, len(groups), 2.6, sharex="col")
    for column, group in zip(axes.T, groups, strict=True):
        own = [s for s in singles if s.teacher.group_id == group]
        teacher = own[0].teacher
        _deleted(view, column[0], teacher, look[DELETION])
        for position, mixer in enumerate(mixers):
            offset = DODGE * (position - (len(mixers) - 1) / 2)
            _lost(view, column[0], [s for s in own if s.name == mixer], offset, look[mixer])
        if sparse:
            _sparsity(view, column[1], teacher)
        _shade(view, column, teacher)
        column[0].axhline(0.0, color=style.INK, lw=0.8)
        _scale(column[0])
        column[0].set_title(style.wrapped(f"{view.called(teacher)} on {view.inputs_of(teacher)}"))
        column[-1].set_xlabel("replaced layer, counted from 0")
        column[-1].set_xticks(range(own[0].depth))
    axes[0][0].set_ylabel("test accuracy lost (points)")
    if sparse:
        axes[1][0].set_ylabel("sparsity of its attention")
    style.legend_below(figure, list(axes.flat))
    seeds = max(len(s.variant.points) for s in singles)
    below = "; below, how sparse the teacher's attention in that layer is, over all queries"
    return style.Drawing(
        figure,
        "Test accuracy that a student loses against its teacher when this layer's attention alone is "
        f"replaced, mean over {counted(seeds, 'seed')} (bars: 95 % t interval, paired over seeds), beside "
        "the validation accuracy lost when it is deleted without training (shaded: uninformative layers, "
        f"whose deletion costs less than the margin){below if sparse else ''}; points lost are on a scale "
        "that is linear up to 1 and logarithmic beyond.",
    )


def _lost(view: View, ax: Axes, own: Sequence[Student], offset: float, look: style.Look) -> None:
    for number, student in enumerate(sorted(own, key=lambda s: s.replaced)):
        lost = drop(view, student)
        if lost is None:
            continue
        below, above = lost.estimate - lost.low, lost.high - lost.estimate
        ax.errorbar(
            student.replaced[0] + offset,
            lost.estimate * 100,
            yerr=None if lost.method == "single" else [[below * 100], [above * 100]],
            color=look.colour, marker=look.marker, ms=5, ls="", lw=1,
            label="" if number else student.name,
        )  # fmt: skip


def _deleted(view: View, ax: Axes, teacher: Variant, look: style.Look) -> None:
    found = [d for d in deletions(view, teacher).values() if not d.group]
    if found:
        ax.plot(
            [d.layers[0] for d in found], [d.drop.estimate * 100 for d in found], ls="", marker="_",
            ms=15, mew=2.0, color=look.colour, label=DELETION,
        )  # fmt: skip


def _shade(view: View, axes: Sequence[Axes], teacher: Variant) -> None:
    """Marks the layers where a replacement can show nothing."""
    for deletion in deletions(view, teacher).values():
        if not deletion.group and not deletion.informative:
            layer = deletion.layers[0]
            for ax in axes:
                ax.axvspan(layer - 0.5, layer + 0.5, color=style.FAINT, alpha=0.5, lw=0, zorder=0)


def _scale(ax: Axes) -> None:
    """A few points lost show beside the tens that the first layer may cost."""
    ax.set_yscale("symlog", linthresh=1.0)
    low, high = ax.get_ylim()
    ticks = [sign * x for sign in (-1, 1) for x in (0.5, 1, 2, 5, 10, 20, 50)]
    ax.yaxis.set_major_locator(FixedLocator([0.0, *[x for x in ticks if low <= x <= high]]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _sparsity(view: View, ax: Axes, teacher: Variant) -> None:
    for number, (measure, name) in enumerate(MEASURES.items()):
        values = per_layer(view, teacher, "sparsity", "sparsity", measure=measure, queries="all")
        if values:
            ax.plot(
                range(len(values)), values, color=style.ramp(len(MEASURES))[number],
                ls=style.DASHES[number], marker=".", label=name,
            )  # fmt: skip
    ax.set_ylim(0, 1)
