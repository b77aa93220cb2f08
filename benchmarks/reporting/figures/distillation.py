"""What students had learned after each tenth of their samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.sparse_teachers import course
from benchmarks.reporting.students import Student, students
from benchmarks.reporting.text import axis_text, counted
from models.mixers import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.reporting.view import View

MOST = 8
"""Lines that one panel can hold apart."""


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A panel per set of replaced layers, a line per teacher and mixer."""
    panels: dict[tuple[int, ...], list[Student]] = {}
    for student in students(view):
        if len(_course(view, student)) > 1:
            panels.setdefault(student.replaced, []).append(student)
    widest = sorted(panels, key=lambda layers: (-len(panels[layers]), -len(layers)))[:3]
    if not widest:
        return style.NotDrawn("no training record of a student yet")
    shown = {
        layers: panels[layers][:MOST] for layers in sorted(widest, key=lambda own: (len(own), own))
    }
    several = len({s.teacher.group_id for own in shown.values() for s in own}) > 1
    labels = {
        s.variant.group_id: f"{s.name} of {view.called(s.teacher)}{view.size_of(s.teacher)}"
        if several
        else s.name
        for own in shown.values()
        for s in own
    }
    look = style.looks(list(dict.fromkeys(labels.values())))
    figure, axes = style.panels(1, len(shown), 3.2, sharey=True)
    for ax, (layers, own) in zip(axes[0], shown.items(), strict=True):
        for student in own:
            label = labels[student.variant.group_id]
            ax.plot(
                *zip(*_course(view, student), strict=True), color=look[label].colour,
                marker=look[label].marker, ms=4, label=label,
            )  # fmt: skip
        _second_stage(view, ax, own)
        ax.set_title(axis_text("replace", layers))
        ax.set_xlabel("samples seen (thousands)")
    axes[0][0].set_ylabel("validation accuracy (%)")
    style.legend_below(figure, list(axes[0]))
    seeds = max(len(s.variant.points) for own in shown.values() for s in own)
    return style.Drawing(
        figure,
        "Validation accuracy of students after each tenth of their samples, on at most 1,000 inputs, mean "
        f"over {counted(seeds, 'seed')}; dotted: where stage 2, which trains all weights, follows on the "
        "stage that trains the new modules alone.",
    )


def _second_stage(view: View, ax: Axes, own: Sequence[Student]) -> None:
    """Where it begins: a line for each number of samples there are."""
    begins = set()
    for student in own:
        kind = student.variant.points[0].point.params.get("mixer", "bilstm")
        if student.replaced and names.find(kind).trainable:
            config = view.config(student.variant)
            begins.add(config.get("samples", 0) * config.get("stage1_share", 0) / 1000)
    for begin in sorted(begins):
        ax.axvline(begin, color=style.MUTED, ls=":", lw=1)


def _course(view: View, student: Student) -> list[tuple[float, float]]:
    """(thousands of samples, mean accuracy in percent) after each part."""
    return [(samples / 1000, 100 * accuracy) for samples, accuracy in course(view, student)]
