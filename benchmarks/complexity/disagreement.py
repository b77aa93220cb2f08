"""How far the people who labelled an input were apart, for sets that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.data.archives import read_member
from benchmarks.data.fetch import package_path
from benchmarks.data.sources import PackageSource
from benchmarks.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data.card import Card


def disagreement(card: Card, row_ids: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Standard deviation of each input's ratings, on the scale of the ratings.

    Args:
        card: of a packaged set of one part.
        row_ids: (n,) inputs.

    Returns:
        (n,) values, or None where the card names no ratings.

    Raises:
        DataError: the file of ratings does not fit the rows.
    """
    ratings = card.ratings
    if ratings is None:
        return None
    source = card.source
    if not isinstance(source, PackageSource) or len(source.parts) != 1:
        raise DataError(f"data set '{card.name}': ratings need a packaged set of one part")
    package = package_path(card)
    lines = _fields(read_member(package, ratings.path))
    rows = _fields(read_member(package, source.parts[0].path))
    if [line[ratings.key] for line in lines] != [row[ratings.key] for row in rows]:
        raise DataError(
            f"{package.name}:{ratings.path}: its column {ratings.key} is not that of the rows of "
            f"'{card.name}', so it cannot be said which ratings are whose"
        )
    spread = np.array([float(line[ratings.spread]) for line in lines])
    return spread[row_ids]


def _fields(content: bytes) -> list[list[str]]:
    """Tab-separated fields of each line; only numbers are read of them, so any encoding will do."""
    lines = content.decode("latin-1").split("\n")
    return [line.rstrip("\r").split("\t") for line in lines if line.strip()]
