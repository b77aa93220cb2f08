"""The lock of a hub set: what its first download read off the files.

A lock lies in `locks/NAME.json` beside the card, or in the cache where the checkout cannot be
written; the row ids of its splits lie in `splits/NAME.json` in the same place. Whoever may, commits
both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from benchmarks.canonical import digest
from benchmarks.data.card import Card, Counts
from benchmarks.data.sources import HubSource, ParquetPart, ParquetSource, Strict, explain
from benchmarks.errors import InvalidFileError
from benchmarks.paths import cache_dir
from benchmarks.running.files import write_atomically
from benchmarks.toml_files import shown


class Lock(Strict):
    """What a hub set's files are."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    repo: str
    revision: str = Field(description="commit on the hub")
    parts: tuple[ParquetPart, ...] = Field(min_length=1)
    unlabelled: int = Field(ge=0, description="rows left out for `reader.drop_label`")
    counts: Counts
    card: str = Field(description="what of the card the row ids rest on, hashed")


def locked(card: Card) -> Card | None:
    """The card of a hub set as its lock says it is; None without a lock.

    Raises:
        InvalidFileError: the lock is damaged, or was made from another card.
    """
    if not isinstance(card.source, HubSource):
        return None
    for folder in _folders(card):
        path = lock_file(folder, card.name)
        if path.is_file():
            return as_locked(card, _read(path, card), folder)
    return None


def as_locked(card: Card, lock: Lock, folder: Path) -> Card:
    """A hub card with what a lock adds; its row ids lie in `folder`."""
    left_out = f"Rows without a label, left out: {lock.unlabelled:,}." if lock.unlabelled else ""
    return Card.model_validate(
        card.model_dump(by_alias=True)
        | {
            "source": ParquetSource(
                kind="parquet",
                origin="hub",
                repo=lock.repo,
                revision=lock.revision,
                folder=hub_folder(card, lock.revision),
                parts=lock.parts,
            ),
            "counts": lock.counts,
            "notes": (*card.notes, *filter(None, [left_out])),
        },
        context={"folder": folder},
    )


def write_lock(card: Card, lock: Lock, folder: Path) -> Path:
    """Writes a lock where `locked` finds it.

    Raises:
        DiskError: the folder cannot be written.
    """
    path = lock_file(folder, card.name)
    write_atomically(path, (lock.model_dump_json(indent=1, by_alias=True) + "\n").encode())
    return path


def writable_folder(card: Card) -> Path:
    """Where a new lock goes: beside the card, or in the cache where that cannot be written."""
    beside, cached = _folders(card)
    return beside if os.access(beside, os.W_OK) else cached


def lock_file(folder: Path, name: str) -> Path:
    """Path of a card's lock below a folder of cards."""
    return folder / "locks" / f"{name}.json"


def lock_place(card: Card) -> str:
    """Where the lock of a locked card lies, for people."""
    return shown(lock_file(card.splits_file.parent.parent, card.name))


def hub_folder(card: Card, revision: str) -> Path:
    """Where the files of one revision are kept."""
    return cache_dir() / "hub" / card.name / revision


def rests_on(card: Card) -> str:
    """Hash of what a lock's row ids depend on, beside the files."""
    tables = {"task", "classes", "source", "reader", "splits", *(["images"] * card.is_image)}
    return digest(card.model_dump(include=tables), length=16)


def _folders(card: Card) -> tuple[Path, Path]:
    return card.splits_file.parent.parent, cache_dir() / "datasets"


def _read(path: Path, card: Card) -> Lock:
    again = f"remove it and run `frugalbench fetch {card.name}`"
    try:
        lock = Lock.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InvalidFileError(f"{shown(path)}: {explain(error, 'lock')}; {again}") from error
    if lock.card != rests_on(card):
        raise InvalidFileError(
            f"{shown(path)}: was made from another version of the card '{card.name}' (its source, "
            f"classes, reader or splits were another); {again}"
        )
    return lock
