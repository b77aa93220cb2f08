"""Fetching pretrained weights from the Hugging Face hub, and locking what the first download brought.

The lock lies in `locks/NAME.json` beside the card, or in the cache where the checkout cannot be
written.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from benchmarks.data.hub_errors import hub_errors
from benchmarks.data.sources import Inside, Sha256, Strict, explain
from benchmarks.data.weights import WeightsCard, WeightsHub
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.paths import cache_dir
from benchmarks.running.files import sha256_of, storage_errors, write_atomically
from benchmarks.toml_files import shown


class WeightsLock(Strict):
    """What the file of a hub card is."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    repo: str
    revision: str = Field(min_length=1, description="commit on the hub")
    path: Inside
    sha256: Sha256


def locked_weights(card: WeightsCard) -> WeightsCard | None:
    """The hub card as its lock says it is; None without a lock, or for other cards.

    Raises:
        InvalidFileError: the lock is damaged, or of another file than the card names.
    """
    if not isinstance(card.source, WeightsHub):
        return None
    for folder in _folders(card):
        path = _lock_file(folder, card)
        if path.is_file():
            lock = _read(path, card, card.source)
            source = card.source.model_copy(
                update={"revision": lock.revision, "sha256": lock.sha256}
            )
            told = (
                f"Fetched from {lock.repo} at {lock.revision}: {lock.path}, sha256 {lock.sha256}."
            )
            return card.model_copy(
                update={"source": source, "provenance": (*card.provenance, told)}
            )
    return None


def lock_place(card: WeightsCard) -> str:
    """Where the lock lies, for people."""
    found = (_lock_file(folder, card) for folder in _folders(card))
    return shown(next((path for path in found if path.is_file()), _lock_file(card.folder, card)))


def hub_weights(card: WeightsCard, source: WeightsHub) -> Path:
    """Where the file of a locked card is kept."""
    return _kept(card) / source.revision / card.tensors.path


def fetch_hub_weights(card: WeightsCard) -> Path:
    """Downloads the file unless it is here and intact; the first time also locks it.

    Safe between processes: one downloads, the others wait and use what it brought.

    Raises:
        DataError: the hub cannot be reached, refuses, lacks the file, or has another than the lock
            says.
    """
    from filelock import FileLock

    with storage_errors(_kept(card)):
        _kept(card).mkdir(parents=True, exist_ok=True)
        lock = FileLock(_kept(card) / ".lock")
    with lock:
        now = locked_weights(card) or card
        if not isinstance(now.source, WeightsHub):
            raise DataError(f"weights '{card.name}' are not on the hub ({card.source_text})")
        return _first(now, now.source) if now.is_unverified else _again(now, now.source)


def _first(card: WeightsCard, source: WeightsHub) -> Path:
    from huggingface_hub import HfApi

    with _errors(card, source):
        revision = str(HfApi().model_info(source.repo).sha)
    found = source.model_copy(update={"revision": revision})
    path = _download(card, found)
    _require_tensors(card, path)
    lock = WeightsLock(
        schema=1,
        repo=source.repo,
        revision=revision,
        path=card.tensors.path,
        sha256=sha256_of(path),
    )
    beside, cached = _folders(card)
    folder = beside if os.access(beside, os.W_OK) else cached
    text = lock.model_dump_json(indent=1, by_alias=True) + "\n"
    write_atomically(_lock_file(folder, card), text.encode())
    return path


def _require_tensors(card: WeightsCard, path: Path) -> None:
    """So that nothing else gets a lock; whether a model fits is looked at when one starts from it."""
    if card.tensors.format != "safetensors":
        return
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            file.keys()
    except SafetensorError as error:
        path.unlink()
        raise DataError(
            f"weights '{card.name}': the fetched {card.tensors.path} is no safetensors file ({error}); "
            "nothing was kept"
        ) from error


def _again(card: WeightsCard, source: WeightsHub) -> Path:
    path = hub_weights(card, source)
    if path.is_file() and sha256_of(path) == source.sha256:
        return path
    path.unlink(missing_ok=True)
    _download(card, source)
    found = sha256_of(path)
    if found != source.sha256:
        path.unlink()
        raise DataError(
            f"weights '{card.name}': the fetched {card.tensors.path} of {source.repo} at "
            f"{source.revision} has sha256 {found}, the lock says {source.sha256}; nothing was kept"
        )
    return path


def _download(card: WeightsCard, source: WeightsHub) -> Path:
    from huggingface_hub import hf_hub_download

    folder = _kept(card) / source.revision
    with _errors(card, source):
        hf_hub_download(source.repo, card.tensors.path, revision=source.revision, local_dir=folder)
    return folder / card.tensors.path


def _errors(card: WeightsCard, source: WeightsHub) -> AbstractContextManager[None]:
    otherwise = "let HF_ENDPOINT name a mirror of the hub that can be reached"
    return hub_errors(
        f"weights '{card.name}'", card.name, source.repo, place="", otherwise=otherwise
    )


def _kept(card: WeightsCard) -> Path:
    return cache_dir() / "weights" / card.name


def _folders(card: WeightsCard) -> tuple[Path, Path]:
    return card.folder, cache_dir() / "weights"


def _lock_file(folder: Path, card: WeightsCard) -> Path:
    return folder / "locks" / f"{card.name}.json"


def _read(path: Path, card: WeightsCard, source: WeightsHub) -> WeightsLock:
    again = f"remove it and run `frugalbench fetch {card.name}`"
    try:
        lock = WeightsLock.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InvalidFileError(f"{shown(path)}: {explain(error, 'lock')}; {again}") from error
    if (lock.repo, lock.path) != (source.repo, card.tensors.path):
        raise InvalidFileError(
            f"{shown(path)}: is the lock of {lock.path} in {lock.repo}, but the card '{card.name}' "
            f"names {card.tensors.path} in {source.repo}; {again}"
        )
    return lock
