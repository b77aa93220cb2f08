"""Reading results: a suite's planned records joined with what a store, or the reference, holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.paths import resource_dir, runs_dir
from benchmarks.planning.expand import expand
from benchmarks.planning.plan import Measurable, wanted_records
from benchmarks.planning.suite import Suite, load_suite
from benchmarks.running.store import KEY_IN_NAME, RecordStore

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from benchmarks.planning.expand import Expansion, Use
    from benchmarks.records import Record, Value


@dataclass(frozen=True)
class Found:
    """A record, and what the suite wanted it for (sweep, label, axes: `wanted.planned`)."""

    wanted: Measurable
    record: Record


@dataclass(frozen=True)
class ResultSet:
    """What a suite asks for, and what there is of it.

    Attributes:
        expansion: the suite's points.
        store: where the records lie.
        found: the records that are there, failed ones too, in the suite's order.
        missing: what was not measured yet, or only under a key that no longer fits.
        stale: how many records of the suite's points were left out because of such a key.
        damaged: how many were left out because they cannot be used; a warning named each.
    """

    expansion: Expansion
    store: RecordStore
    found: tuple[Found, ...]
    missing: tuple[Measurable, ...]
    stale: int = 0
    damaged: int = 0

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.expansion.suite

    @property
    def records(self) -> list[Record]:
        """Every record, failed ones too; each once, though several sweeps may want it."""
        return list(self._by_identity.values())

    @property
    def failed(self) -> list[Record]:
        """The records that hold a failure."""
        return [record for record in self.records if record.status == "failed"]

    def record(
        self, point_id: str, meter: str, baseline_point_id: str | None = None
    ) -> Record | None:
        """The record of one point (or pair) by one meter, failed or not; None where missing."""
        return self._by_identity.get((point_id, meter, baseline_point_id))

    @cached_property
    def _by_identity(self) -> dict[tuple[str, str, str | None], Record]:
        return {_identity(f.record): f.record for f in self.found}

    def arrays(self, record: Record) -> pd.DataFrame | None:
        """The per-example arrays of a record; None where the meter keeps none.

        Raises:
            StorageError: the file beside the record is missing or altered.
        """
        return self.store.read_arrays(record)


def collect(
    suite: str | Path | Suite, *, reference: bool = False, runs: Path | None = None
) -> ResultSet:
    """Joins a suite's planned records with those on disk.

    Current results count only under the key that the present code, data and libraries give; the
    accepted reference was made by older code, and is joined by identity alone.

    Args:
        suite: name, path or a loaded suite.
        reference: read the accepted reference instead of the working state.
        runs: working state to read; None means `paths.runs_dir()`.

    Raises:
        InvalidFileError: an unknown or invalid suite.
    """
    loaded = suite if isinstance(suite, Suite) else load_suite(str(suite))
    if reference:
        return join(expand(loaded), reference_store(loaded.name), any_key=True)
    return join(expand(loaded), RecordStore((runs or runs_dir()) / "records"))


def join(expansion: Expansion, store: RecordStore, *, any_key: bool = False) -> ResultSet:
    """Joins a suite's planned records with those of one store.

    Args:
        expansion: the suite's points.
        store: where to look.
        any_key: take the newest record of each identity, whatever its key (the reference).
    """
    found: list[Found] = []
    missing: list[Measurable] = []
    stale: set[Path] = set()
    damaged: set[Path] = set()
    for wanted in wanted_records(expansion):
        present = set(_files(store, wanted))
        if any_key:
            read = {path: store.read_or_warn(path) for path in present}
            record = _newest(wanted, read.values())
            refused = {path for path, content in read.items() if content is None}
        else:
            record = wanted.existing(store)
            # the files of other keys are not read: whatever is in them, they are outdated
            refused = set() if record else present & {store.path(*wanted.address)}
        if record is None:
            missing.append(wanted)
        else:
            found.append(Found(wanted, record))
            present.discard(store.path_for(record))
        damaged |= refused
        stale |= present - refused
    return ResultSet(
        expansion, store, tuple(found), tuple(missing), stale=len(stale), damaged=len(damaged)
    )


def reference_store(suite_name: str) -> RecordStore:
    """The accepted records of a suite; its folder need not exist."""
    return RecordStore(resource_dir("reference") / suite_name / "records", flat=True)


def load_results(
    suite: str | Path | Suite, *, reference: bool = False, runs: Path | None = None
) -> pd.DataFrame:
    """All values of a suite's current (or accepted) records as one tidy table.

    Args:
        suite: name, path or a loaded suite.
        reference: read the accepted reference instead of the working state.
        runs: working state to read; None means `paths.runs_dir()`.

    Returns:
        One row a value, in the suite's order: suite, sweep, label, model, dataset, seed, stage,
        max_length, train_fraction, a column for each axis of the suite, meter, name, value, unit,
        low, high, method, confidence, n, a column `ctx_NAME` for each name in a value's context,
        status, warnings, point_id, group_id, baseline_label, baseline_point_id. A failed record
        gives one row whose status is "failed" and whose value is missing. A point that stands in
        several sweeps gives its rows once in each: choose a sweep before averaging. List-valued
        axes are tuples, so that they can be grouped by.

    Raises:
        InvalidFileError: an unknown or invalid suite.

    Example:
        >>> table = load_results("quick")  # doctest: +SKIP
        >>> table[table.name == "accuracy"].groupby(["dataset", "label"]).value.mean()
    """
    import pandas as pd

    results = collect(suite, reference=reference, runs=runs)
    places = [(f, use) for f in results.found for use in f.wanted.planned.uses]
    axes = _unique(name for _, use in places for name in use.axes)
    contexts = _unique(name for f in results.found for v in f.record.values for name in v.context)
    name = results.suite.name
    rows = [row for f, use in places for row in _rows(name, f, use, axes, contexts)]
    columns = [
        *_BEFORE,
        *(axis for axis in axes if axis not in _BEFORE),
        *_MIDDLE,
        *(f"ctx_{name}" for name in contexts),
        *_AFTER,
    ]
    return pd.DataFrame(rows, columns=columns)


_BEFORE = (
    "suite", "sweep", "label", "model", "dataset", "seed", "stage", "max_length", "train_fraction",
)  # fmt: skip
_MIDDLE = ("meter", "name", "value", "unit", "low", "high", "method", "confidence", "n")
_AFTER = (
    "status", "warnings", "point_id", "group_id", "baseline_label", "baseline_point_id",
)  # fmt: skip


def _rows(
    suite: str, found: Found, use: Use, axes: Iterable[str], contexts: Iterable[str]
) -> Iterable[Mapping[str, Any]]:
    record, planned = found.record, found.wanted.planned
    point, baseline = planned.point, found.wanted.baseline
    common = {
        **{axis: _hashable(use.axes.get(axis)) for axis in axes},
        "suite": suite,
        "sweep": use.sweep,
        "label": use.label,
        "model": point.model,
        "dataset": point.dataset,
        "seed": point.seed,
        "stage": planned.stage,
        "max_length": point.max_length,
        "train_fraction": point.train_fraction,
        "meter": record.meter,
        "status": record.status,
        "warnings": "; ".join(record.warnings),
        "point_id": record.point_id,
        "group_id": record.group_id,
        "baseline_label": baseline.label if baseline else None,
        "baseline_point_id": record.baseline_point_id,
    }
    values: list[Value | None] = [*record.values] or [None]
    for value in values:
        own: dict[str, Any] = {}
        if value is not None:
            own = value.model_dump(exclude={"context"})
            own |= {f"ctx_{name}": value.context.get(name) for name in contexts}
        yield {**common, **own}


def _identity(record: Record) -> tuple[str, str, str | None]:
    return record.point_id, record.meter, record.baseline_point_id


def _files(store: RecordStore, wanted: Measurable) -> list[Path]:
    """The record files of this identity under any key."""
    other = wanted.baseline.point_id if wanted.baseline else None
    path = store.path(wanted.point.point_id, wanted.meter.name, wanted.key.cache_key, other)
    stem = path.name.removesuffix(f"{wanted.key.cache_key[:KEY_IN_NAME]}.json")
    return list(path.parent.glob(f"{stem}{'[0-9a-f]' * KEY_IN_NAME}.json"))


def _newest(wanted: Measurable, read: Iterable[Record | None]) -> Record | None:
    other = wanted.baseline.point_id if wanted.baseline else None
    identity = (wanted.point.point_id, wanted.meter.name, other)
    fitting = [r for r in read if r is not None and _identity(r) == identity]
    return max(fitting, key=lambda record: record.created, default=None)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
