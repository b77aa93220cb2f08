"""Numbers and tables as Markdown: sensible digits, a unit in every column, nothing that breaks a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tabulate import tabulate

if TYPE_CHECKING:
    from benchmarks.records import Value
    from benchmarks.statistics.intervals import Interval

MISSING = "missing"
"""A number that the suite asks for and that is not there (yet)."""
NOT_APPLICABLE = "-"
"""A number that this variant cannot have."""

Align = Literal["left", "right"]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """A Markdown table.

    Args:
        headers: column titles, each with its unit.
        rows: cells as text.
        align: one letter a column, "l" or "r"; default: the first left, the others right.
    """
    letters = align or "l" + "r" * (len(headers) - 1)
    return tabulate(
        [[escape(cell) for cell in row] for row in rows],
        headers=[escape(header) for header in headers],
        tablefmt="pipe",
        colalign=["left" if letter == "l" else "right" for letter in letters],
        disable_numparse=True,
    )


def escape(text: str) -> str:
    """Text that stays inside one table cell."""
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")


def bullets(lines: Sequence[str]) -> str:
    """A Markdown list, one line an entry."""
    return "\n".join(f"- {' '.join(line.split())}" for line in lines)


def sentence(text: str) -> str:
    """The text with a full stop at its end."""
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."


def percent(share: float, digits: int = 1) -> str:
    """0.954 -> "95.4"; the unit stands in the column's title."""
    return f"{share * 100:.{digits}f}"


def points(difference: float, digits: int = 1) -> str:
    """A difference of two shares in percentage points, signed: -0.004 -> "-0.4"."""
    text = f"{difference * 100:+.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text


def points_span(low: float, high: float) -> str:
    """An interval in percentage points; with two digits where an end would round to zero.

    On which side of zero an interval ends is what it is read for.
    """
    digits = 2 if "0.0" in {points(low), points(high)} else 1
    return f"[{points(low, digits)}, {points(high, digits)}]"


def gap_text(gap: Interval, *, bare: bool = False) -> str:
    """A difference in points with its interval, e.g. "+1.2 [-0.3, 2.7]".

    Args:
        gap: as a share; "single" or no width: no interval.
        bare: leaves the interval out.
    """
    if bare or gap.method == "single":
        return points(gap.estimate)
    return f"{points(gap.estimate)} {points_span(gap.low, gap.high)}"


def gap_cell(gap: Interval | None) -> str:
    """A difference in a table, which may not be measured yet."""
    return MISSING if gap is None else gap_text(gap)


def difference_text(gap: Interval) -> str:
    """A difference in points, and in a word what its interval says of its sign."""
    if gap.method == "single":
        return f"{points(gap.estimate)} points"
    word = "higher" if gap.low > 0 else "lower" if gap.high < 0 else "no difference shown"
    return f"{points(gap.estimate)} points {points_span(gap.low, gap.high)}, {word}"


def span(low: float, high: float, digits: int, scale: float = 1.0) -> str:
    """An interval in brackets, e.g. "[0.91, 1.08]"."""
    return f"[{low * scale:.{digits}f}, {high * scale:.{digits}f}]"


def bounds(value: Value, digits: int = 2, scale: float = 1.0) -> str:
    """A value's interval in brackets; empty where it has none."""
    if value.low is None or value.high is None:
        return ""
    return span(value.low, value.high, digits, scale)


def significant(value: float, digits: int = 3) -> str:
    """`digits` significant digits without an exponent: 1234.5 -> "1,234", 0.01234 -> "0.0123"."""
    if value == 0:
        return "0"
    from math import floor, log10

    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:,.{decimals}f}"


def ratio(value: float) -> str:
    """A ratio with its sign for "times": 1.318 -> "1.32x"."""
    return f"{value:.2f}x"


def duration(seconds: float) -> str:
    """Wall time: 74 -> "1 min 14 s"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def listing(items: Sequence[str], *, most: int = 12, by: str = ", ") -> str:
    """Names joined by commas or by `by`, cut after `most`."""
    shown = by.join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def pooled(seeds: int) -> str:
    """1 -> "1 seed", 3 -> "3 seeds together"."""
    return counted(seeds, "seed") + (" together" if seeds > 1 else "")


def counted(n: int, singular: str, plural: str = "") -> str:
    """1 -> "1 seed", 3 -> "3 seeds"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def layers_text(layers: Sequence[int]) -> str:
    """(4, 5, 6, 7) -> "4-7"; () -> "none"; single layers and gaps are written out."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs) or "none"


def axis_text(name: str, value: Any, *, images: bool = False) -> str:
    """One axis value with its name, e.g. "depth 4", "layers 4-7 replaced", "224 x 224 pixels"."""
    if name == "replace" and value is not None:
        if not value:
            return "no layer replaced"
        return f"{'layer' if len(value) == 1 else 'layers'} {layers_text(value)} replaced"
    if name == "max_length" and images:
        return f"{value} x {value} pixels"
    return f"{name} {shown(value)}"


def shown(value: Any) -> str:
    """An axis value as text; "-" where the axis does not apply."""
    if value is None:
        return NOT_APPLICABLE
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
