"""Makes the current records and their report the reference that `check` compares with."""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import __version__
from benchmarks.checking.privacy import private_parts
from benchmarks.errors import FrugalbenchError, StorageError, UsageError
from benchmarks.paths import is_checkout, resource_dir
from benchmarks.results import collect, join
from benchmarks.running.files import storage_errors
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.planning.suite import Suite
    from benchmarks.results import ResultSet

LOG = "ACCEPTED.md"
SHOWN = 10


class NotAcceptableError(FrugalbenchError):
    """The current records cannot be the reference; the text says which and why."""

    exit_code = 1


def accept_suite(suite: str | Suite, reason: str, *, runs: Path | None = None) -> Path:
    """Copies records and report to `reports/reference/SUITE`, all or nothing.

    Args:
        suite: name or a loaded suite.
        reason: why these become the reference; kept in ACCEPTED.md.
        runs: working state; None means `paths.runs_dir()`.

    Returns:
        The reference's folder.

    Raises:
        UsageError: no reason, not a checkout, or a suite file that is not the repository's own.
        NotAcceptableError: records are missing, failed, or hold what must not be committed.
        StorageError: the disk is full or read-only; the former reference is still in place.
    """
    words = " ".join(reason.split())
    if not words:
        raise UsageError('accept needs a reason: --reason "what changed, and why it is right"')
    if not is_checkout():
        raise UsageError(
            "accept writes reports/reference in a checkout of the repository; this is an installed "
            "copy. Clone the repository and run it there."
        )
    results = collect(suite, runs=runs)
    name = results.suite.name
    if results.suite.path.resolve().parent != resource_dir("suites").resolve():
        raise UsageError(f"{results.suite.path} is not one of the repository's own suites")
    _require_complete(results)
    final = resource_dir("reference") / name
    with storage_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".new", dir=final.parent))
        try:
            beside.chmod(0o755)
            _fill(beside, results)
            _log(beside / LOG, final / LOG, words)
            _swap(beside, final)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return final


def _require_complete(results: ResultSet) -> None:
    name = results.suite.name
    if results.failed:
        lines = [f"{r.label} on {r.point['dataset']}, {r.meter}" for r in results.failed]
        raise NotAcceptableError(
            f"{len(lines)} records of '{name}' failed: {_listed(lines)}. Mend the cause and run it again."
        )
    if results.missing:
        lines = [
            f"{m.point.label} on {m.point.dataset}, seed {m.point.seed}, {m.meter.name}"
            for m in results.missing
        ]
        raise NotAcceptableError(
            f"{len(lines)} records of '{name}' are missing under the present code and data: "
            f"{_listed(lines)}. Run `frugalbench run {name}` first."
        )


def _listed(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def _fill(folder: Path, results: ResultSet) -> None:
    from benchmarks.checking.claims import evaluate
    from benchmarks.reporting.report import write

    store = RecordStore(folder / "records", flat=True)
    for record in results.records:
        store.write(record, results.arrays(record))
    for path in sorted((folder / "records").glob("*.json")):
        _require_private(path.name, _texts(json.loads(path.read_text(encoding="utf-8"))))
    accepted = join(results.expansion, store, any_key=True)
    write(accepted, evaluate(accepted), folder, reference=True)
    readme = folder / "README.md"
    _require_private(readme.name, [readme.read_text(encoding="utf-8")])


def _require_private(name: str, texts: Iterable[str]) -> None:
    """Refuses a file whose texts hold what must not be committed."""
    for text in texts:
        found = private_parts(text)
        if found:
            raise NotAcceptableError(
                f"{name} holds {found[0]!r}, which must not be committed (absolute path, host "
                "or user name); nothing was accepted"
            )


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts(part)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _log(new: Path, old: Path, reason: str) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    before = old.read_text(encoding="utf-8") if old.is_file() else "# Accepted references\n\n"
    new.write_text(f"{before}- {today}, version {__version__}: {reason}\n", encoding="utf-8")


def _swap(new: Path, final: Path) -> None:
    """Puts `new` in the place of `final`; on failure the old one is back where it was."""
    if not final.exists():
        new.rename(final)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=".old", dir=final.parent))
    final.rename(old)
    try:
        new.rename(final)
    except OSError as error:
        with contextlib.suppress(OSError):
            old.rename(final)
        raise StorageError(f"cannot put the new reference in place: {error}") from error
    shutil.rmtree(old)
