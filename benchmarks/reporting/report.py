"""A suite's report: README.md and figures, from records alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from benchmarks.errors import BusyError, UsageError
from benchmarks.paths import runs_dir
from benchmarks.reporting.page import FIGURES, MARK, page
from benchmarks.reporting.sections.overview import unmeasured
from benchmarks.reporting.view import View
from benchmarks.running.files import storage_errors

if TYPE_CHECKING:
    from benchmarks.checking.verdicts import ClaimResult
    from benchmarks.results import ResultSet

README = "README.md"
LOCK_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Written:
    """A report on disk.

    Attributes:
        folder: holds README.md and figures/.
        empty: says that nothing was measured yet; empty where something was.
    """

    folder: Path
    empty: str


def render(suite_name: str, *, out: Path | None = None, reference: bool = False) -> Written:
    """Writes the report of a suite's records, complete or not; imports no torch.

    Args:
        suite_name: name of a suite, or path of its file.
        out: folder to write; None means `runs/reports/SUITE`. What a former report left there is
            replaced in one go, other files in it are kept.
        reference: render the accepted records instead of the working state.

    Raises:
        InvalidFileError: an unknown or invalid suite or claim.
        UsageError: `out` holds a README.md that is not a report.
        StorageError: the disk is full or read-only.
        BusyError: another process has been writing a report for a minute.
    """
    from benchmarks.checking.claims import evaluate
    from benchmarks.results import collect

    results = collect(suite_name, reference=reference)
    if reference and not results.found:
        raise UsageError(f"suite '{results.suite.name}' has no accepted reference to render")
    folder = out if out is not None else runs_dir() / "reports" / results.suite.name
    write(results, evaluate(results), folder, reference=reference)
    return Written(folder, empty=unmeasured(View(results)))


def write(
    results: ResultSet, claims: Sequence[ClaimResult], folder: Path, *, reference: bool = False
) -> Path:
    """Writes the report of results in hand; see `render`."""
    from benchmarks.reporting.figures.gallery import render_all

    _refuse_foreign(folder)
    view = View(results, reference=reference)
    figures = render_all(view)
    text = page(view, claims, figures)
    files = {f"{FIGURES}/{f.entry.name}.svg": f.svg for f in figures if f.svg is not None}
    with storage_errors(folder), _lock(folder):
        replace_folder(folder, {README: text.encode(), **files})
    return folder


def replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts a whole new folder in the place of the old one, with two renames.

    README.md and figures/ are the report's; whatever else lies in the old folder (the records of a
    reference) moves over.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
    try:
        new.chmod(0o777 & ~_umask())
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        if folder.exists():
            old = Path(
                tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".old", dir=folder.parent)
            )
            folder.rename(old)
            new.rename(folder)
            for kept in old.iterdir():
                if kept.name not in {README, FIGURES}:
                    kept.rename(folder / kept.name)
            shutil.rmtree(old)
        else:
            new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _refuse_foreign(folder: Path) -> None:
    """Raises UsageError where a README.md lies that no report wrote."""
    readme = folder / README
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a report needs a folder of its own")
    if readme.is_file() and not readme.read_text(encoding="utf-8", errors="replace").startswith(
        MARK
    ):
        raise UsageError(
            f"{readme} was not written by `frugalbench report` and would be lost; choose another folder"
        )


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One report at a time; the lock lies in the working state, never in a committed folder."""
    from benchmarks.canonical import digest

    path = runs_dir() / "reports" / f".{digest(str(folder.resolve()), length=12)}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout as error:
        raise BusyError(f"another process is writing the report in {folder}; try again") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
