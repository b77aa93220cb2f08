"""Whether the tokens that a model keeps are those that attention weighs most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def overlap(kept: NDArray[np.bool_], scores: NDArray[Any]) -> float | None:
    """Share of the k kept tokens that are among the k with the highest scores; ties go by place.

    Args:
        kept: (tokens,).
        scores: (tokens,) finite.

    Returns:
        A value in [0, 1], k / tokens if the two have nothing to do with each other; None where all
        tokens are kept, or none.
    """
    count = int(kept.sum())
    if count in (0, len(kept)):
        return None
    best = np.argsort(-scores, kind="stable")[:count]
    return float(kept[best].mean())


def average_precision(kept: NDArray[np.bool_], scores: NDArray[Any]) -> float | None:
    """Area under the precision-recall curve by steps: sum of (R_i - R_i-1) P_i, equal scores as one.

    Args:
        kept: (tokens,), what is to be found.
        scores: (tokens,) finite; high ones say "kept".

    Returns:
        A value in (0, 1], about the share that is kept if the two have nothing to do with each
        other; None where all tokens are kept, or none.
    """
    count = int(kept.sum())
    if count in (0, len(kept)):
        return None
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    found = np.cumsum(kept[order])[ends]
    steps = np.diff(found, prepend=0) / count
    return float((steps * found / (ends + 1)).sum())
