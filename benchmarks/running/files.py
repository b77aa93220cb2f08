"""Atomic files: what has a name is whole, and a full or read-only disk is one clear error."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from benchmarks.errors import DiskError


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turns an OSError while writing `path` into a DiskError that says what to do."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            f"cannot write {path}: {error.strerror or error}. Free some space or make the folder "
            "writable (or choose another with FRUGALBENCH_RUNS or FRUGALBENCH_CACHE), then run the "
            "same command again: everything finished is kept."
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` beside `path`, syncs it, then renames it into place.

    Raises:
        DiskError: the disk is full or read-only.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(content)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it gets its name, synced, only once the block has ended without an error."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
