"""Rank correlation of two measures of the same inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.statistics.intervals import MIN_SEEDS, Interval, paired_t, spearman_normal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

MIN_INPUTS = 10
MIN_LAYERS = 4


def spearman(x: ArrayLike, y: ArrayLike) -> float | None:
    """Spearman's rank correlation, ties at their mean rank.

    Args:
        x: (n,) finite numbers.
        y: (n,) likewise.

    Returns:
        A value in [-1, 1]; None where there are fewer than 10 inputs or one of the two is constant.
    """
    import numpy as np
    from scipy import stats

    a, b = np.asarray(x), np.asarray(y)
    if len(a) < MIN_INPUTS or (a == a[0]).all() or (b == b[0]).all():
        return None
    return float(stats.spearmanr(a, b).statistic)


def partial_spearman(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float | None:
    """Spearman's correlation of x and y that a third measure does not explain.

    Args:
        x: (n,) finite numbers.
        y: (n,) likewise.
        given: (n,) likewise.

    Returns:
        The partial correlation of the ranks; None where `spearman` has none, or where the third measure
        determines one of the two.
    """
    xy, xz, yz = spearman(x, y), spearman(x, given), spearman(y, given)
    if xy is None:
        return None
    if xz is None or yz is None:
        return xy  # the third measure is constant and explains nothing
    left = (1 - xz**2) * (1 - yz**2)
    return float((xy - xz * yz) / left**0.5) if left > 1e-9 else None


def rank_partial(x: ArrayLike, y: ArrayLike, given: Sequence[ArrayLike] = ()) -> float | None:
    """Spearman's correlation over a few layers, with the ranks of other measures held fixed.

    The correlation of what is left of the ranks of x and of y after a least-squares fit on the ranks
    of the others; without others, plain Spearman.

    Args:
        x: (n,) numbers, one a layer.
        y: (n,) likewise.
        given: any number of further ones.

    Returns:
        A value in [-1, 1]; None where fewer than 4 layers are left after one is given up for each
        measure held fixed, where x or y is constant, or where the others determine one of them.
    """
    import numpy as np
    from scipy import stats

    n = len(np.asarray(x))
    if n - len(given) < MIN_LAYERS:
        return None
    ranks = [stats.rankdata(np.asarray(values)) for values in (x, y, *given)]
    fixed = np.column_stack([np.ones(n), *ranks[2:]])
    left = [r - fixed @ np.linalg.lstsq(fixed, r, rcond=None)[0] for r in ranks[:2]]
    lengths = [float(np.linalg.norm(r)) for r in left]
    if min(lengths) < 1e-6:
        return None
    return float(np.clip(left[0] @ left[1] / (lengths[0] * lengths[1]), -1.0, 1.0))


def over_seeds(correlations: Sequence[float], n_inputs: int) -> Interval:
    """Mean of one correlation per seed, with its interval.

    From two seeds on Student's t over seeds, which differ by far more than the choice of inputs moves
    any of them; with one seed the interval over inputs, which says nothing of other seeds.

    Args:
        correlations: one per seed, on the same inputs; at least one.
        n_inputs: inputs that each rests on.
    """
    if len(correlations) < MIN_SEEDS:
        return spearman_normal(correlations[0], n_inputs)
    interval = paired_t(correlations)
    return replace(interval, low=max(interval.low, -1.0), high=min(interval.high, 1.0))


def over_layers(correlations: Sequence[float], n_layers: int) -> Interval:
    """Mean over seeds of a correlation over few layers, with its interval.

    On Student's t over seeds of Fisher's z, since correlations over so few layers are skewed: on their
    own scale three seeds would cover 90 % instead of 95 % at a correlation of 0.7 over six layers.

    Args:
        correlations: one per seed, two at least; 1 counts as 1 - 1 / n_layers^2, whose z is finite.
        n_layers: layers that each rests on.
    """
    import numpy as np

    most = 1 - 1 / n_layers**2
    z = paired_t([float(value) for value in np.arctanh(np.clip(correlations, -most, most))])
    low, estimate, high = (float(value) for value in np.tanh([z.low, z.estimate, z.high]))
    return Interval(estimate, low, high, "fisher_z_t", z.confidence, z.n)
