"""Reading files out of packages, and out of archives inside them, without unpacking anything."""

from __future__ import annotations

import fnmatch
import io
import tarfile
import zipfile
from pathlib import Path
from typing import BinaryIO

from benchmarks.errors import DataError


def read_member(package: Path, path: str) -> bytes:
    """One file of a package; `outer.tar.gz!inner/file` reaches into an archive inside it.

    Raises:
        DataError: there is no such file, or an archive is damaged.
    """
    *outer, inner = path.split("!")
    with package.open("rb") as stream:
        content: BinaryIO = stream
        name = package.name
        for step in outer:
            content, name = io.BytesIO(_read(content, name, step)), step
        return _read(content, name, inner)


def matching_members(package: Path, pattern: str) -> list[tuple[str, bytes]]:
    """Name and content of each file of a zip or wheel that matches the pattern, by name.

    Raises:
        DataError: none matches, or the archive is damaged.
    """
    try:
        with zipfile.ZipFile(package) as archive:
            names = sorted(fnmatch.filter(archive.namelist(), pattern))
            found = [(name, archive.read(name)) for name in names]
    except zipfile.BadZipFile as error:
        raise DataError(f"{package.name} is damaged: {error}") from error
    if not found:
        raise DataError(f"{package.name} holds no file {pattern}")
    return found


def _read(stream: BinaryIO, name: str, path: str) -> bytes:
    try:
        if name.endswith(".tar.gz"):
            with tarfile.open(fileobj=stream) as tar:
                member = tar.extractfile(path)
                return member.read() if member else b""
        with zipfile.ZipFile(stream) as archive:
            return archive.read(path)
    except KeyError as error:
        raise DataError(f"{name} holds no file {path}") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise DataError(f"{name} is damaged: {error}") from error
