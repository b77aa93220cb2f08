"""Accuracy of hybrids whose last layers were replaced, against their speed and their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.fronts import front
from benchmarks.reporting.students import students
from benchmarks.reporting.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

TEACHER = "teacher"
PLACES = ((-8, -6), (8, -6), (-8, 6), (8, 6))
"""Where each mixer's numbers stand beside its markers (points), so that they keep apart."""


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row per teacher; a panel for each batch size that was timed, and one for parameters."""
    found = [
        s
        for s in students(view)
        if s.replaced and s.is_last and view.mean(s.variant, "accuracy", "accuracy") is not None
    ]
    groups = list(dict.fromkeys(s.teacher.group_id for s in found))
    sizes = view.timed_at([s.variant for s in found])
    bases = {b.label for s in found if (b := view.baseline(s.variant))}
    base = bases.pop() if len(bases) == 1 else "its baseline"
    costs: dict[str, Callable[[Variant], float | None]] = {
        f"time of a batch of {size}\nrelative to {base} (x)": _time(view, size) for size in sizes
    }
    costs["parameters (M)"] = _size(view)
    rows = [[s for s in found if s.teacher.group_id == group] for group in groups]
    rows = [row for row in rows if any(cost(s.variant) for s in row for cost in costs.values())]
    if not rows:
        return style.NotDrawn(
            "no hybrid with replaced last layers has accuracy and cost records yet"
        )
    look = style.looks([TEACHER, *dict.fromkeys(s.name for row in rows for s in row)])
    figure, axes = style.panels(len(rows), len(costs), 3.2)
    for line, own in zip(axes, rows, strict=True):
        for ax, (title, cost) in zip(line, costs.items(), strict=True):
            _panel(view, ax, own, cost, look)
            ax.set_xlabel(title)
        line[0].set_ylabel("test accuracy (%)")
        teacher = own[0].teacher
        line[0].set_title(style.wrapped(f"{view.called(teacher)} on {view.inputs_of(teacher)}"))
    style.legend_below(figure, list(axes.flat))
    seeds = max(len(s.variant.points) for row in rows for s in row)
    return style.Drawing(
        figure,
        f"Test accuracy (mean over {counted(seeds, 'seed')}) of students whose last layers have another "
        "module in attention's place, against the time of a forward pass on one thread (one over the "
        "realised speed-up, first seed) and against parameters; numbers say how many of the last "
        "layers are replaced, the grey line joins what nothing else beats in both.",
    )


def _panel(
    view: View,
    ax: Axes,
    own: list[Student],
    cost: Callable[[Variant], float | None],
    look: dict[str, style.Look],
) -> None:
    shown = [(TEACHER, "", own[0].teacher)]
    shown += [(s.name, str(len(s.replaced)), s.variant) for s in own]
    means = []
    for name, text, variant in shown:
        x, accuracy = cost(variant), view.mean(variant, "accuracy", "accuracy")
        if x is None or accuracy is None:
            continue
        means.append((x, accuracy * 100))
        ax.plot(
            x, accuracy * 100, ls="", marker=look[name].marker, ms=7, color=look[name].colour,
            mec=style.PANEL, label=name, zorder=3,
        )  # fmt: skip
        ax.annotate(
            text, (x, accuracy * 100), xytext=PLACES[list(look).index(name) % len(PLACES)],
            textcoords="offset points", fontsize=7, color=style.INK, ha="center", va="center",
        )  # fmt: skip
    if means:
        ax.plot(*zip(*front(means), strict=True), color=style.MUTED, lw=0.9, zorder=1)
    ax.margins(0.12)


def _time(view: View, size: int) -> Callable[[Variant], float | None]:
    def cost(variant: Variant) -> float | None:
        if variant.is_baseline:
            return 1.0
        record = view.first(variant, "latency")
        value = record.get("speedup", batch_size=size) if record else None
        return None if value is None else 1 / value.value

    return cost


def _size(view: View) -> Callable[[Variant], float | None]:
    def cost(variant: Variant) -> float | None:
        n = view.mean(variant, "memory", "parameters")
        return None if n is None else n / 1e6

    return cost
