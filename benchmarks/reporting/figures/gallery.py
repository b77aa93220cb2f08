"""All figures in the order of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl

from benchmarks.reporting.figures import (
    budget_by_length,
    budget_per_layer,
    cost_scaling,
    heads_used,
    pareto_latency,
    pareto_macs,
    study,
    style,
    training,
)

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


@dataclass(frozen=True)
class Entry:
    """One figure: file name without suffix, heading, and the function that draws it."""

    name: str
    heading: str
    draw: Callable[[View], style.Drawing | style.NotDrawn]


GALLERY: tuple[Entry, ...] = (
    Entry("pareto-macs", "Accuracy against MACs", pareto_macs.draw),
    Entry("pareto-latency", "Accuracy against realised speed-up", pareto_latency.draw),
    Entry("cost-scaling", "Cost against depth and heads", cost_scaling.draw),
    Entry("study", "Accuracy and s against depth and data", study.draw),
    Entry("budget-per-layer", "s of each layer", budget_per_layer.draw),
    Entry("heads-used", "Heads used per input", heads_used.draw),
    Entry("training", "Training dynamics", training.draw),
    Entry("budget-by-length", "s against input length", budget_by_length.draw),
)


@dataclass(frozen=True)
class Rendered:
    """One entry's outcome; `svg` is None where `note` is the reason that there is no figure."""

    entry: Entry
    svg: bytes | None
    note: str


def render_all(view: View) -> list[Rendered]:
    """Draws every figure of the gallery."""
    rendered = []
    with mpl.rc_context(style.RC):
        for entry in GALLERY:
            drawing = entry.draw(view)
            if isinstance(drawing, style.NotDrawn):
                rendered.append(Rendered(entry, None, drawing.reason))
            else:
                rendered.append(Rendered(entry, style.svg(drawing.figure), drawing.caption))
    return rendered
