"""What a forward pass costs as the model grows, at several k; fresh weights, no training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.axes import TITLES, lines, numeric
from benchmarks.reporting.text import listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.reporting.view import Variant, View

BATCH_SIZE = 32
Line = list[tuple[float, "Variant"]]


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """MACs above, MACs and time relative to dense below; a column per growing axis."""
    columns = []
    for sweep, variants in view.costs.items():
        measured = [v for v in variants if view.values(v, "flops", "macs", stat="mean")]
        columns += [
            (sweep, axis, lines(view, measured, axis))
            for axis in numeric(measured)
            if axis != "k_fraction"
        ]
    if not columns:
        return style.NotDrawn("no untrained cost sweep with MACs records at two sizes or more yet")
    names = list(dict.fromkeys(_name(key) for *_, found in columns for key in found))
    look = style.looks(names)
    figure, axes = style.panels(2, len(columns), 2.8, sharex="col")
    timed = False
    for (top, below), (sweep, axis, found) in zip(axes.T, columns, strict=True):
        for key, line in found.items():
            name = _name(key)
            _macs(view, top, line, name, look[name])
            timed = _relative(view, below, line, look[name]) or timed
        below.axhline(1.0, color=style.INK, lw=0.8)
        top.set_title(sweep)
        below.set_xlabel(TITLES.get(axis, axis))
        below.set_xticks(sorted({x for line in found.values() for x, _ in line}))
        top.set_ylim(0, top.get_ylim()[1])
    highest = max(ax.get_ylim()[1] for ax in axes[1])
    for ax in axes[1]:
        ax.set_ylim(0, highest)
    axes[0][0].set_ylabel("MACs per input (M)")
    axes[1][0].set_ylabel("cost relative to dense (x)")
    style.legend_below(figure, list(axes[0]))
    time = (
        f"full lines are latency at batch {BATCH_SIZE} (bars: 95 % t interval over processes), "
        "dotted ones MACs"
        if timed
        else "dotted lines are MACs, no latency was measured"
    )
    data = listing(sorted({v.dataset for vs in view.costs.values() for v in vs}))
    return style.Drawing(
        figure,
        f"Cost of a forward pass with fresh weights on {data} at a fixed number k of the H heads: above, "
        f"MACs per input of the whole model; below, cost as a share of dense's: {time}.",
    )


def _name(key: tuple[str, str]) -> str:
    label, rest = key
    return f"{label}, {rest}" if rest else label


def _macs(view: View, ax: Axes, line: Line, name: str, look: style.Look) -> None:
    xs = [x for x, _ in line]
    ys = [(view.mean(v, "flops", "macs", stat="mean") or 0.0) / 1e6 for _, v in line]
    ax.plot(xs, ys, color=look.colour, marker=look.marker, label=name, ms=5)


def _relative(view: View, ax: Axes, line: Line, look: style.Look) -> bool:
    promised = [(x, 1 / p) for x, v in line if (p := view.promised(v)) is not None]
    if promised:
        ax.plot(*zip(*promised, strict=True), color=look.colour, ls=":", lw=1.2)
    points = []
    for x, variant in line:
        record = view.first(variant, "latency")
        speedup = record.get("speedup", batch_size=BATCH_SIZE) if record else None
        if speedup is not None:
            points.append((x, 1 / speedup.value))
            if speedup.low and speedup.high:
                ax.plot([x, x], [1 / speedup.high, 1 / speedup.low], color=look.colour, lw=1.2)
    if points:
        ax.plot(*zip(*points, strict=True), color=look.colour, marker=look.marker, ms=5)
    return bool(points)
