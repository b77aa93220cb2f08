"""How all figures look, and how they are written: the same records give the same bytes.

Colours are those of Okabe and Ito (2008), told apart under the common colour deficiencies, and each
goes with a marker of its own. The panel is near-white and opaque, so that a figure reads the same on a
light and on a dark page. Text is drawn as paths: no font has to be installed where it is looked at.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = "#fdfdfb"
INK = "#24292f"
FAINT = "#d6d9dc"
MUTED = "#6a737d"
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">")
DASHES = ("-", "--", ":", "-.")
WIDTH = 8.2
"""Inches; about the width of a rendered page on a code host."""

RC: Any = {
    "svg.hashsalt": "frugalbench",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": PANEL,
    "figure.facecolor": PANEL,
    "savefig.facecolor": PANEL,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 6,
    "lines.markeredgewidth": 0.7,
    "path.simplify": True,
}

TITLE_WIDTH = 32
"""Characters of a panel's title on one line; a mirror's name is longer."""


def wrapped(title: str, width: int = TITLE_WIDTH) -> str:
    """A panel's title, broken into lines of `width` characters where it is long."""
    return textwrap.fill(title, width)


@dataclass(frozen=True)
class Drawing:
    """A finished figure.

    Attributes:
        figure: what to save.
        caption: one sentence: what is shown, n, seeds, interval.
    """

    figure: Figure
    caption: str


@dataclass(frozen=True)
class NotDrawn:
    """Why there is no figure."""

    reason: str


@dataclass(frozen=True)
class Look:
    """Colour and marker of one thing, the same in every figure."""

    colour: str
    marker: str


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each name, in order; colours repeat after 8, with other markers."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
        for i, name in enumerate(names)
    }


def ramp(n: int) -> list[str]:
    """`n` colours of one ordered scale, dark to light, all readable on the panel."""
    colours = mpl.colormaps["viridis"]
    shares = [0.0 if n == 1 else 0.75 * i / (n - 1) for i in range(n)]
    return [mpl.colors.to_hex(colours(share)) for share in shares]


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, Any]:
    """A figure of `rows` x `columns` axes, each row `height` inches high.

    Returns:
        The figure and the axes as an array [rows, columns].
    """
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int = 4) -> None:
    """One legend under all panels, each label once."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=min(columns, len(found)),
        )


def dash_legend(ax: Axes, names: Sequence[str], *, beside: bool = False) -> None:
    """A small legend of what a panel's dashes mean, first name first dash.

    Args:
        ax: the panel.
        names: what the dashes stand for; none, no legend.
        beside: right of the panel instead of inside it, where it covers nothing.
    """
    handles = [
        Line2D([], [], color=MUTED, ls=DASHES[i % len(DASHES)], label=name)
        for i, name in enumerate(names)
    ]
    if not handles:
        return
    where: Any = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {"loc": "best"}
    ax.legend(
        handles=handles, fontsize=8, frameon=True, facecolor=PANEL, edgecolor="none",
        framealpha=0.8, **where,
    )  # fmt: skip


def svg(figure: Figure) -> bytes:
    """The figure as SVG, without date or version in it."""
    buffer = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
