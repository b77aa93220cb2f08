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
    heads_used,
    pareto_latency,
    pareto_macs,
    study,
    style,
    training,
)

if TYPE_CHECKING:
    from benchmarks.reporting.view import Variant, View


@dataclass(frozen=True)
class Entry:
    """One figure.

    Attributes:
        name: file name without suffix.
        heading: what it is called.
        draw: the function that draws it.
        group: the variants it shows: those of the main sweeps, the studies or the cost sweeps.
        meters: it is left out where the suite asks none of these about them.
    """

    name: str
    heading: str
    draw: Callable[[View], style.Drawing | style.NotDrawn]
    group: Literal["main", "studies", "costs"]
    meters: tuple[str, ...]

    def concerns(self, view: View) -> bool:
        """Whether the suite asks for what it shows."""
        groups: dict[str, Iterable[Sequence[Variant]]] = {
            "main": view.main.values(),
            "studies": view.studies.values(),
            "costs": view.costs.values(),
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
    Entry("budget-per-layer", "s of each layer", budget_per_layer.draw, "main", ("accuracy",)),
    Entry("heads-used", "Heads used per input", heads_used.draw, "main", ("accuracy",)),
    Entry("training", "Training dynamics", training.draw, "main", ("training",)),
    Entry(
        "budget-by-length", "s against input length", budget_by_length.draw, "main", ("accuracy",)
    ),
    Entry(
        "complexity", "s against the complexity of inputs", complexity.draw, "main",
        ("complexity",),
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
