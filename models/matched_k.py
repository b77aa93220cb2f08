"""As many heads as a trained model used: histograms of k, and a fractional mean k by mixing two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.config import EncoderConfig


def mixed(row: Sequence[int]) -> tuple[int, ...]:
    """A histogram with the same mean k and as many inputs, but only the whole numbers beside it.

    Args:
        row: entry k = number of inputs with k heads.
    """
    n = sum(row)
    floor, rest = divmod(sum(k * count for k, count in enumerate(row)), n)
    counts = [0] * (len(row) + 1)
    counts[floor], counts[floor + 1] = n - rest, rest
    return tuple(counts[: len(row)])


def require_fit(histograms: Sequence[Sequence[int]], config: EncoderConfig) -> None:
    """Raises ValueError unless there is a histogram for each layer of 1 to n_heads; none is fine."""
    if histograms and len(histograms) != config.depth:
        raise ValueError(
            f"k_histogram must have one row per layer ({config.depth}), not "
            f"{len(histograms)}: the source must have the same depth"
        )
    for layer, row in enumerate(histograms):
        if min(row, default=0) < 0 or sum(row[1 : config.n_heads + 1]) != sum(row) or not sum(row):
            raise ValueError(
                f"k_histogram of layer {layer} must count inputs with 1 to {config.n_heads} "
                f"heads, not {list(row)}"
            )
