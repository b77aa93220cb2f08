"""A fixed sample of a split's rows, for what would take too long on all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.data.batches import Split


def at_most(split: Split, n: int) -> Split:
    """The split, or a sample of n of its rows, in their order; the same on every machine.

    Rows are drawn by a hash of their ids. Every k-th row would not do: sets often lie sorted, or turn
    by turn, by class.
    """
    if len(split) <= n:
        return split
    return split.take(np.sort(np.argsort(_mixed(split.row_ids), kind="stable")[:n]))


def _mixed(row_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's output function (Steele et al. 2014): as good as random, and never changes."""
    with np.errstate(over="ignore"):
        z = (row_ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed
