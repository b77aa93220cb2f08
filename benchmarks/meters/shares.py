"""A share with its Wilson interval as a record's value."""

from __future__ import annotations

from benchmarks.records import Value
from benchmarks.statistics.intervals import wilson


def share(name: str, right: int, n: int) -> Value:
    """`right` of `n` as a fraction.

    Args:
        name: the value's name, e.g. "accuracy".
        right: inputs that were right.
        n: inputs.
    """
    interval = wilson(right, n)
    return Value(
        name=name,
        value=interval.estimate,
        unit="fraction",
        n=interval.n,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        confidence=interval.confidence,
    )
