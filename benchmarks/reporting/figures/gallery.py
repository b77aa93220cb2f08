"""All figures in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import matplotlib as mpl

from benchmarks.reporting.figures import (
    budget_by_length,
    budget_per_layer,
    complexity,
    cost_scaling,
    distillation,
    heads_used,
    hybrid_fronts,
    kept_tokens,
    kernels,
    pareto_latency,
    pareto_macs,
    replaced_layers,
    sparsity_map,
    study,
    style,
    teacher_sparsity,
    training,
)
from benchmarks.reporting.students import students

if TYPE_CHECKING:
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


Group = Literal[
    "main",
    "deciding",
    "studies",
    "costs",
    "hybrids",
    "teachers",
    "halting",
    "students",
    "singles",
    "last",
]


@dataclass(frozen=True)
class Entry:
    """One figure.

    Attributes:
        name: file name without suffix.
        heading: what it is called.
        draw: the function that draws it.
        group: the variants it shows: those of the main sweeps where they are several, of these the
            ones that decide how many heads they run, the studies, the cost sweeps, untrained hybrids,
            teachers and what else was trained without one, of these the ones that halt tokens, the
            students, or of these the ones with a single layer or the last layers replaced.
        meters: it is left out where the suite asks none of these about them.
    """

    name: str
    heading: str
    draw: Callable[[View], style.Drawing | style.NotDrawn]
    group: Group
    meters: tuple[str, ...]

    def concerns(self, view: View) -> bool:
        """Whether the suite asks for what it shows."""
        trained, found = [v for v in view.variants if v.trained], students(view)
        groups: dict[Group, Iterable[Sequence[Variant]]] = {
            "main": [own for own in view.main.values() if len(own) > 1],
            "deciding": [[v for v in own if v.decides_heads] for own in view.main.values()],
            "studies": view.studies.values(),
            "costs": view.costs.values(),
            "hybrids": view.hybrids.values(),
            "teachers": [[v for v in trained if not v.is_student]],
            "halting": [[v for v in trained if not v.is_student and v.halts_tokens]],
            "students": [[v for v in trained if v.is_student]],
            "singles": [[s.variant for s in found if len(s.replaced) == 1]],
            "last": [[s.variant for s in found if s.replaced and s.is_last]],
        }
        return any(view.plans(variants, *self.meters) for variants in groups[self.group])


GALLERY: tuple[Entry, ...] = (
    Entry("pareto-macs", "Accuracy against MACs", pareto_macs.draw, "main", ("flops",)),
    Entry(
        "pareto-latency", "Accuracy against realised speed-up", pareto_latency.draw, "main",
        ("latency",),
    ),
    Entry("cost-scaling", "Cost against depth and heads", cost_scaling.draw, "costs", ("flops",)),
    Entry("study", "Accuracy and s along the studies", study.draw, "studies", ("accuracy",)),
    Entry("budget-per-layer", "s of each layer", budget_per_layer.draw, "deciding", ("accuracy",)),
    Entry("heads-used", "Heads used per input", heads_used.draw, "deciding", ("accuracy",)),
    Entry("training", "Training dynamics", training.draw, "deciding", ("training",)),
    Entry(
        "budget-by-length", "s against input length", budget_by_length.draw, "deciding", ("accuracy",)
    ),
    Entry(
        "complexity", "s against the complexity of inputs", complexity.draw, "main",
        ("complexity",),
    ),
    Entry(
        "replaced-layers", "Accuracy lost by replacing each layer", replaced_layers.draw, "singles",
        ("accuracy",),
    ),
    Entry(
        "sparsity-map", "Sparsity of attention by layer and head", sparsity_map.draw, "teachers",
        ("sparsity",),
    ),
    Entry(
        "teacher-sparsity", "Students of sparser teachers", teacher_sparsity.draw, "halting",
        ("sparsity",),
    ),
    Entry(
        "hybrid-fronts", "Hybrids: accuracy against time and size", hybrid_fronts.draw, "last",
        ("latency", "memory"),
    ),
    Entry("distillation", "The course of distillation", distillation.draw, "students", ("training",)),
    Entry("kept-tokens", "Patches that halting teachers keep", kept_tokens.draw, "halting", ("sparsity",)),
    Entry(
        "kernels", "Speed of modules in attention's place", kernels.draw, "hybrids", ("latency",)
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Rendered:
    """One entry's outcome; `svg` is None where `note` is the reason that there is no figure."""

    entry: Entry
    svg: bytes | None
    note: str


def render_all(view: View) -> list[Rendered]:
    """Draws every figure of the gallery that the suite asks for."""
    rendered = []
    with mpl.rc_context(style.RC):
        for entry in [entry for entry in GALLERY if entry.concerns(view)]:
            drawing = entry.draw(view)
            if isinstance(drawing, style.NotDrawn):
                rendered.append(Rendered(entry, None, drawing.reason))
            else:
                rendered.append(Rendered(entry, style.svg(drawing.figure), drawing.caption))
    return rendered
