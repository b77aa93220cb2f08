"""What a forward pass costs as the model grows, at several k; fresh weights, no training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.axes import TITLES, lines, numeric
from benchmarks.reporting.text import listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

Line = list[tuple[float, "Variant"]]
DODGE = 0.012
"""Share of a panel's width by which timed lines stand apart, so that their bars can be told apart."""


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """MACs above; below, a row per batch size: time relative to dense beside the MACs' ratio."""
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
    sizes = view.timed_at([v for variants in view.costs.values() for v in variants])
    rows = max(1, len(sizes))
    figure, axes = style.panels(1 + rows, len(columns), 2.35, sharex="col")
    for column, (sweep, axis, found) in zip(axes.T, columns, strict=True):
        xs = sorted({x for line in found.values() for x, _ in line})
        top, *below = column
        for position, (key, line) in enumerate(found.items()):
            name = _name(key)
            _macs(view, top, line, name, look[name])
            offset = DODGE * (xs[-1] - xs[0]) * (position - len(found) / 2)
            for row, ax in enumerate(below):
                _promised(view, ax, line, look[name])
                if sizes:
                    _realised(view, ax, line, sizes[row], offset, look[name])
        for ax in below:
            ax.axhline(1.0, color=style.INK, lw=0.8)
        top.set_title(sweep)
        top.set_ylim(0, top.get_ylim()[1] * 1.05)
        below[-1].set_xlabel(TITLES.get(axis, axis))
        below[-1].set_xticks(xs)
    _same_scale(axes[1:])
    axes[0][0].set_ylabel("MACs per input (M)")
    for row in range(rows):
        what = f"time at batch {sizes[row]}," if sizes else "MACs,"
        axes[1 + row][0].set_ylabel(f"{what}\nrelative to dense (x)")
    style.legend_below(figure, list(axes[0]))
    told = (
        f"below, time of a batch of {' and of '.join(map(str, sizes))} as a share of dense's (full lines; "
        "bars: 95 % t interval over processes) beside the share of the MACs (dotted)"
        if sizes
        else "below, as a share of dense's; no latency is there yet"
    )
    data = listing(sorted({view.name(v.dataset) for vs in view.costs.values() for v in vs}))
    return style.Drawing(
        figure,
        f"Cost of a forward pass with fresh weights on {data} at a fixed number k of the H heads: above, "
        f"MACs per input of the whole model; {told}.",
    )


def _name(key: tuple[str, str]) -> str:
    label, rest = key
    return f"{label}, {rest}" if rest else label


def _same_scale(axes: list[list[Axes]]) -> None:
    """One scale for everything relative to dense, with 1 inside it."""
    limits = [limit for row in axes for ax in row for limit in ax.get_ylim()]
    for row in axes:
        for ax in row:
            ax.set_ylim(min(limits), max(limits))


def _macs(view: View, ax: Axes, line: Line, name: str, look: style.Look) -> None:
    xs = [x for x, _ in line]
    ys = [(view.mean(v, "flops", "macs", stat="mean") or 0.0) / 1e6 for _, v in line]
    ax.plot(xs, ys, color=look.colour, marker=look.marker, label=name, ms=5)


def _promised(view: View, ax: Axes, line: Line, look: style.Look) -> None:
    shares = [(x, 1 / p) for x, v in line if (p := view.promised(v)) is not None]
    if shares:
        ax.plot(*zip(*shares, strict=True), color=look.colour, ls=":", lw=1.2)


def _realised(
    view: View, ax: Axes, line: Line, batch_size: int, offset: float, look: style.Look
) -> None:
    """Time as a share of the baseline's: one over the speed-up, and so is its interval."""
    points = []
    for x, variant in line:
        record = view.first(variant, "latency")
        speedup = record.get("speedup", batch_size=batch_size) if record else None
        if speedup is not None:
            points.append((x + offset, 1 / speedup.value))
            if speedup.low and speedup.high:
                bar = [1 / speedup.high, 1 / speedup.low]
                ax.plot([x + offset] * 2, bar, color=look.colour, lw=1.2)
    if points:
        ax.plot(*zip(*points, strict=True), color=look.colour, marker=look.marker, ms=4, lw=1.2)
