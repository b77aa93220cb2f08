"""The Pareto front of points whose cost is to be small and whose gain is to be great."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those (cost, gain) that no other point beats in one without losing in the other, by cost."""
    best: list[tuple[float, float]] = []
    for cost, gain in sorted(set(points), key=lambda p: (p[0], -p[1])):
        if not best or gain > best[-1][1]:
            best.append((cost, gain))
    return best
