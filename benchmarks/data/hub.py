"""Fetching a data set from the Hugging Face hub, and locking what the first download brought."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.data.card import Card, Counts
from benchmarks.data.hub_errors import hub_errors
from benchmarks.data.locks import (
    Lock,
    as_locked,
    hub_folder,
    rests_on,
    writable_folder,
    write_lock,
)
from benchmarks.data.parquet import count_rows
from benchmarks.data.rows import read_any_rows
from benchmarks.data.sources import HubSource, ParquetFile, ParquetPart, ParquetSource
from benchmarks.data.splits import compute_splits, write_splits
from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import sha256_of, storage_errors

_SHOWN = 8


def fetch_hub(card: Card) -> Path:
    """Downloads a hub set unless it is here and intact; the first time also locks it.

    With a lock, exactly the locked revision and files are brought. Without one the newest revision
    is, and its files' checksums, rows and row ids of the splits are written down.

    Returns:
        The folder of its files.

    Raises:
        DataError: the hub cannot be reached, refuses, has other files than the card or the lock
            says, or a file is not what the card says.
    """
    from filelock import FileLock

    folder = cache_dir() / "hub" / card.name
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
    with lock:
        if isinstance(card.source, HubSource):
            return _first(card, card.source)
        if isinstance(card.source, ParquetSource):
            return _again(card, card.source)
    raise DataError(f"data set '{card.name}' is not on the hub ({card.source_text})")


def _first(card: Card, source: HubSource) -> Path:
    revision, names = _revision(card, source)
    folder = hub_folder(card, revision)
    parts = []
    for part in source.parts:
        found = sorted(fnmatch.filter(names, part.files))
        if not found:
            there = [name for name in names if name.endswith(".parquet")] or names
            raise DataError(
                f"data set '{card.name}': {source.repo} has no file {part.files}; there are "
                f"{_some(there)}"
            )
        for name in found:
            _download(card, source.repo, name, revision, folder)
        parts.append(ParquetPart(name=part.name, files=tuple(_look(folder, n) for n in found)))
    lock = Lock(
        schema=1,
        repo=source.repo,
        revision=revision,
        parts=tuple(parts),
        unlabelled=0,
        counts=Counts(train=0, validation=0, test=0, dropped=0),
        card=rests_on(card),
    )
    target = writable_folder(card)
    locked = as_locked(card, lock, target)
    rows = read_any_rows(locked, folder)
    splits = compute_splits(locked, rows)
    counts = Counts(**{name: len(row_ids) for name, row_ids in vars(splits).items()})
    write_splits(splits, locked.splits_file)
    write_lock(
        card, lock.model_copy(update={"counts": counts, "unlabelled": rows.n_unlabelled}), target
    )
    return folder


def _again(card: Card, source: ParquetSource) -> Path:
    for part in source.parts:
        for file in part.files:
            path = source.folder / file.path
            if path.is_file() and sha256_of(path) == file.sha256:
                continue
            path.unlink(missing_ok=True)
            _download(card, source.repo, file.path, source.revision, source.folder)
            found = sha256_of(path)
            if found != file.sha256:
                path.unlink()
                raise DataError(
                    f"data set '{card.name}': the fetched {file.path} of {source.repo} at "
                    f"{source.revision} has sha256 {found}, the lock says {file.sha256}; "
                    "nothing was kept"
                )
    return source.folder


def _revision(card: Card, source: HubSource) -> tuple[str, list[str]]:
    """The newest commit and its files."""
    from huggingface_hub import HfApi

    with _hub_errors(card, source.repo):
        info = HfApi().dataset_info(source.repo)
        return str(info.sha), [sibling.rfilename for sibling in info.siblings or ()]


def _download(card: Card, repo: str, name: str, revision: str, folder: Path) -> None:
    from huggingface_hub import hf_hub_download

    with _hub_errors(card, repo):
        hf_hub_download(repo, name, repo_type="dataset", revision=revision, local_dir=folder)


def _look(folder: Path, name: str) -> ParquetFile:
    path = folder / name
    return ParquetFile(path=name, sha256=sha256_of(path), rows=count_rows(path))


def _hub_errors(card: Card, repo: str) -> AbstractContextManager[None]:
    otherwise = "name a local mirror by --data or FRUGALBENCH_DATA (docs/adding.md)"
    whose = f"data set '{card.name}'"
    return hub_errors(whose, card.name, repo, place="datasets/", otherwise=otherwise)


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more if names else "none"
