"""Whether a sparser teacher has the better students: the gap to it, and their accuracy as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.sparse_teachers import kept
from benchmarks.reporting.students import drop, students
from benchmarks.reporting.text import counted, layers_text

if TYPE_CHECKING:
    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

TEACHER = "teacher"


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """Left, accuracy lost against the own teacher; right, accuracy; over the teacher's keep ratio."""
    lines: dict[str, list[tuple[float, Student]]] = {}
    for student in students(view):
        ratio = kept(view, student.teacher)
        if student.replaced and ratio is not None and drop(view, student) is not None:
            name = f"{student.name} in {layers_text(student.replaced)}"
            lines.setdefault(name, []).append((ratio, student))
    lines = {name: sorted(line, key=lambda p: p[0]) for name, line in lines.items()}
    lines = {name: line for name, line in lines.items() if len(line) > 1}
    if not lines:
        return style.NotDrawn("no students of teachers with different keep ratios yet")
    look = style.looks([TEACHER, *lines])
    figure, axes = style.panels(1, 2, 3.4)
    left, right = axes[0]
    told: dict[float, Variant] = {}
    for name, line in lines.items():
        xs = [x for x, _ in line]
        lost = [drop(view, s) for _, s in line]
        known = [d for d in lost if d is not None]
        bars = [[d.estimate - d.low for d in known], [d.high - d.estimate for d in known]]
        one_seed = all(d.method == "single" for d in known)
        left.errorbar(
            xs, [d.estimate * 100 for d in known],
            yerr=None if one_seed else [[b * 100 for b in side] for side in bars],
            color=look[name].colour, marker=look[name].marker, label=name,
        )  # fmt: skip
        right.plot(
            xs, [_accuracy(view, s.variant) for _, s in line],
            color=look[name].colour, marker=look[name].marker, label=name,
        )  # fmt: skip
        told |= {x: s.teacher for x, s in line}
    xs = sorted(told)
    right.plot(
        xs, [_accuracy(view, told[x]) for x in xs], color=look[TEACHER].colour,
        marker=look[TEACHER].marker, ls="--", label=TEACHER,
    )  # fmt: skip
    left.axhline(0.0, color=style.INK, lw=0.8)
    left.set_ylabel("lost against the own teacher (points)")
    right.set_ylabel("test accuracy (%)")
    for ax in (left, right):
        ax.set_xlabel("patches that the teacher keeps (share)")
        ax.invert_xaxis()
    style.legend_below(figure, [left, right], columns=3)
    seeds = max(len(s.variant.points) for line in lines.values() for _, s in line)
    return style.Drawing(
        figure,
        "Students of teachers that keep fewer and fewer patches (mean over layers, reached on the "
        "validation split; the plain teacher keeps all): left, test accuracy lost against the own teacher, "
        f"mean over {counted(seeds, 'seed')} (bars: 95 % t interval, paired over seeds); right, accuracy as "
        "such, since a gap can also narrow because the teacher got worse.",
    )


def _accuracy(view: View, variant: Variant) -> float:
    return 100 * (view.mean(variant, "accuracy", "accuracy") or float("nan"))
