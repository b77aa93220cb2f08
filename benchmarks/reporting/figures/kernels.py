"""Speed of untrained hybrids over the number of tokens, beside what their MACs promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.reporting.figures import style
from benchmarks.reporting.kernels import kernels, line, speedup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.reporting.kernels import Kernel
    from benchmarks.reporting.view import View

TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """A row for each batch size, a column for each number of replaced layers."""
    found = [k for k in kernels(view) if k.replaced]
    sizes = view.timed_at([k.variant for k in found])
    if not sizes:
        return style.NotDrawn("no untrained hybrid was timed yet")
    found = [k for k in found if any(speedup(view, k, size) is not None for size in sizes)]
    numbers = sorted({len(k.replaced) for k in found})
    mixers = list(dict.fromkeys(k.mixer for k in found))
    look = style.looks(mixers)
    figure, axes = style.panels(len(sizes), len(numbers), 2.5, sharex=True, sharey=True)
    for row, size in zip(axes, sizes, strict=True):
        for ax, n in zip(row, numbers, strict=True):
            for mixer in mixers:
                _line(view, ax, line(found, mixer, n), size, look[mixer])
            ax.axhline(1.0, color=style.INK, lw=0.8)
            if size == sizes[0]:
                ax.set_title(f"{n} of {found[0].depth} layers replaced")
        row[0].set_ylabel(f"speed-up at batch {size} (x)")
    _scales(axes[0][0], sorted({k.tokens for k in found}))
    for ax in axes[-1]:
        ax.set_xlabel("tokens N")
    style.legend_below(figure, list(axes.flat))
    return style.Drawing(
        figure,
        "Speed-up of untrained models over the same model with fused attention, on one thread of the CPU "
        "(fresh weights; bars: 95 % t interval over processes), by the number of tokens; faint dashes: what "
        "the MACs promise; above the line at 1 the module is faster than attention.",
    )


def _line(view: View, ax: Axes, own: Sequence[Kernel], size: int, look: style.Look) -> None:
    timed = [(k, v) for k in own if (v := speedup(view, k, size)) is not None]
    if not timed:
        return
    xs, ys = [k.tokens for k, _ in timed], [v.value for _, v in timed]
    bars = [
        [v.value - (v.value if v.low is None else v.low) for _, v in timed],
        [(v.value if v.high is None else v.high) - v.value for _, v in timed],
    ]
    ax.errorbar(
        xs, ys, yerr=bars, color=look.colour, marker=look.marker, ms=4, lw=1.3,
        label=timed[0][0].mixer,
    )  # fmt: skip
    promised = [(k.tokens, p) for k, _ in timed if (p := view.promised(k.variant, size))]
    if promised:
        ax.plot(*zip(*promised, strict=True), color=look.colour, ls="--", lw=0.9, alpha=0.5)


def _scales(ax: Axes, tokens: Sequence[int]) -> None:
    """Logarithmic both ways, with plain numbers; the panels share their axes."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axis, ticks in ((ax.xaxis, tokens), (ax.yaxis, TICKS)):
        axis.set_major_locator(FixedLocator(list(ticks)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(plain)
