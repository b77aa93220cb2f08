"""The whole page as Markdown, section after section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.reporting.sections.caveats import caveats
from benchmarks.reporting.sections.complexity import complexity
from benchmarks.reporting.sections.kernels import kernel_section
from benchmarks.reporting.sections.layers import layers
from benchmarks.reporting.sections.overview import heading, setting
from benchmarks.reporting.sections.provenance import ours, problems, repeat, stand_ins
from benchmarks.reporting.sections.replacement import replacement
from benchmarks.reporting.sections.studies import studies
from benchmarks.reporting.sections.summary import summary
from benchmarks.reporting.sections.tables import results
from benchmarks.reporting.sections.verdicts import verdicts

if TYPE_CHECKING:
    from benchmarks.checking.verdicts import ClaimResult
    from benchmarks.reporting.figures.gallery import Rendered
    from benchmarks.reporting.view import View

MARK = "<!-- written by `frugalbench report`; changes by hand are overwritten -->"
"""First line of every report; a folder whose README.md lacks it is not ours to replace."""
FIGURES = "figures"


def page(view: View, claims: Sequence[ClaimResult], figures: Sequence[Rendered]) -> str:
    """README.md's content.

    Args:
        view: the suite's results.
        claims: verdicts of the claims that this suite decides.
        figures: as the gallery rendered them; linked as `figures/NAME.svg`.
    """
    warned = caveats(view, claims)
    sections = [
        MARK,
        heading(view, decides=bool(claims)),
        summary(view, claims),
        layers(view),
        verdicts(claims, view),
        f"## Read this first\n\n{warned}" if warned else "",
        setting(view),
        results(view),
        studies(view),
        replacement(view),
        kernel_section(view),
        complexity(view),
        _figures(figures),
        ours(view),
        stand_ins(view),
        problems(view),
        repeat(view),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _figures(figures: Sequence[Rendered]) -> str:
    parts = ["## Figures"] if figures else []
    for figure in figures:
        if figure.svg is None:
            parts.append(f"### {figure.entry.heading}\n\n*No figure: {figure.note}.*")
        else:
            image = f"![{figure.entry.heading}]({FIGURES}/{figure.entry.name}.svg)"
            parts.append(f"### {figure.entry.heading}\n\n{image}\n\n{figure.note}")
    return "\n\n".join(parts)
