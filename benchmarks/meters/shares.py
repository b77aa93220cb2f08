"""A figure with its interval as a record's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.records import Value
from benchmarks.statistics.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.statistics.intervals import Interval


def share(name: str, right: int, n: int) -> Value:
    """`right` of `n` as a fraction, with its Wilson interval.

    Args:
        name: the value's name, e.g. "accuracy".
        right: inputs that were right.
        n: inputs.
    """
    return with_interval(name, wilson(right, n), "fraction")


def with_interval(
    name: str,
    interval: Interval,
    unit: str,
    context: Mapping[str, int | float | str] | None = None,
) -> Value:
    """An interval's estimate, ends, method, level and n under this name."""
    return Value(
        name=name,
        value=interval.estimate,
        unit=unit,
        n=interval.n,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        confidence=interval.confidence,
        context=dict(context or {}),
    )
