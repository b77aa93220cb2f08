"""Records on disk: one JSON file each, its per-example arrays in a Parquet file beside it.

A damaged or edited file counts as missing, with a warning that names it, so that running again
mends it; and so does a record whose arrays are gone or altered.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from benchmarks.canonical import digest
from benchmarks.errors import FrugalbenchWarning, MeterError, StorageError
from benchmarks.planning.points import ID_LENGTH
from benchmarks.records import SCHEMA_VERSION, Record, wrong_numbers
from benchmarks.running.files import sha256_of, write_atomically

if TYPE_CHECKING:
    import pandas as pd

KEY_IN_NAME = 12


class DamagedRecordWarning(FrugalbenchWarning):
    """A record file that cannot be read; it is treated as missing."""


class RecordStore:
    """Records under one folder.

    Args:
        root: the folder.
        flat: all files in `root` itself (the committed reference) instead of one folder a point.
    """

    def __init__(self, root: Path, *, flat: bool = False) -> None:
        self.root = root
        self.flat = flat

    def path(
        self, point_id: str, meter: str, cache_key: str, baseline_point_id: str | None = None
    ) -> Path:
        """Where the record of this identity lies, whether or not it exists."""
        against = f"--{baseline_point_id}" if baseline_point_id else ""
        name = f"{meter}{against}-{cache_key[:KEY_IN_NAME]}.json"
        return self.root / f"{point_id}-{name}" if self.flat else self.root / point_id / name

    def path_for(self, record: Record) -> Path:
        """Where `record` lies."""
        return self.path(
            record.point_id, record.meter, record.key.cache_key, record.baseline_point_id
        )

    def write(self, record: Record, arrays: pd.DataFrame | None = None) -> Path:
        """Stores a record, its arrays first, so that a record never names a missing file.

        Raises:
            StorageError: the disk is full or read-only.
            MeterError: the record holds what none can, such as NaN or a negative time; nothing is
                written.
        """
        for problem in _wrong_values(record):
            raise MeterError(f"meter '{record.meter}': {problem}")
        path = self.path_for(record)
        if arrays is not None:
            beside = path.with_suffix(".parquet")
            buffer = io.BytesIO()
            arrays.to_parquet(buffer, index=False, compression="zstd")
            write_atomically(beside, buffer.getvalue())
            record = record.model_copy(
                update={"arrays": beside.name, "arrays_sha256": sha256_of(beside)}
            )
        text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_atomically(path, text.encode() + b"\n")
        return path

    def exists(
        self, point_id: str, meter: str, cache_key: str, baseline_point_id: str | None = None
    ) -> bool:
        """Whether a readable record of this identity is here; failed ones count as absent."""
        record = self.find(point_id, meter, cache_key, baseline_point_id)
        return record is not None and record.status == "ok"

    def find(
        self, point_id: str, meter: str, cache_key: str, baseline_point_id: str | None = None
    ) -> Record | None:
        """The record of this identity, or None where it is missing or damaged."""
        path = self.path(point_id, meter, cache_key, baseline_point_id)
        if not path.is_file():
            return None
        record = self.read_or_warn(path)
        return record if record is not None and record.key.cache_key == cache_key else None

    def all(self) -> list[Record]:
        """Every readable record, in the order of their file names."""
        return self._read("*.json" if self.flat else "*/*.json")

    def all_of(self, point_id: str) -> list[Record]:
        """Every readable record of one point, in the order of their file names."""
        return self._read(f"{point_id}-*.json" if self.flat else f"{point_id}/*.json")

    def point_ids(self) -> set[str]:
        """Every point that has a record file, readable or not."""
        if self.flat:
            return {path.name.partition("-")[0] for path in self.root.glob("*.json")}
        return {path.parent.name for path in self.root.glob("*/*.json")}

    def _read(self, pattern: str) -> list[Record]:
        found = (self.read_or_warn(path) for path in sorted(self.root.glob(pattern)))
        return [record for record in found if record is not None]

    def read_arrays(self, record: Record) -> pd.DataFrame | None:
        """The per-example arrays of a record, or None where it has none.

        Raises:
            StorageError: since the record was read, the file went missing or was altered.
        """
        import pandas as pd

        if record.arrays is None:
            return None
        path = self.path_for(record)
        _require_arrays(path, record)
        return pd.read_parquet(path.parent / record.arrays)

    def read_or_warn(self, path: Path) -> Record | None:
        """The record in `path`; None, with a warning that names it, where it is damaged."""
        try:
            return read_record(path)
        except StorageError as error:
            warnings.warn(str(error), DamagedRecordWarning, stacklevel=3)
            return None


def _wrong_values(record: Record) -> Iterator[str]:
    """NaN, infinity, what is no plain value, and numbers that nothing measured can have."""
    yield from wrong_numbers(record)
    for where, value in (*_leaves(record.series, "series"), *_leaves(record.info, "info")):
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{where} is {value}, not a number"
        if not isinstance(value, (str, int, float, type(None))):
            yield f"{where} is {value!r}, no plain value"


def _require_arrays(path: Path, record: Record) -> None:
    """Raises StorageError unless the arrays beside the record in `path` are those it names."""
    if record.arrays is None:
        return
    beside = path.parent / record.arrays
    try:
        if not beside.is_file():
            state = "missing"
        elif sha256_of(beside) != record.arrays_sha256:
            state = "not the file the record was written with"
        else:
            return
    except OSError as error:
        state = f"not readable ({error.strerror})"
    raise StorageError(f"{beside} is {state}; {path.name} beside it counts as missing")


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{where}[{index}]")
    else:
        yield where, value


def read_record(path: Path) -> Record:
    """Reads one record file.

    Raises:
        StorageError: half-written, damaged, edited, or of another schema version; or its arrays
            are missing or altered.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(
            f"{path} is damaged ({error}); it counts as missing and is measured again by the next run"
        ) from error
    version = values.get("schema_version") if isinstance(values, dict) else None
    if version != SCHEMA_VERSION:
        raise StorageError(
            f"{path}: schema_version is {version!r}, this version reads {SCHEMA_VERSION}; it counts "
            "as missing"
        )
    try:
        record = Record.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"{path}: {where}: {first['msg']}; it counts as missing") from error
    for key, declared, named in (
        ("point", record.point, record.point_id),
        ("baseline", record.baseline, record.baseline_point_id),
    ):
        if _identity_of(declared) != named:
            raise StorageError(
                f"{path}: {key}: these values are not those of {named}, so the file was edited; it "
                "counts as missing"
            )
    for problem in _wrong_values(record):
        raise StorageError(f"{path}: {problem}; the file was edited, and counts as missing")
    _require_arrays(path, record)
    return record


def _identity_of(declared: dict[str, Any] | None) -> str | None:
    try:
        return None if declared is None else digest(declared, length=ID_LENGTH)
    except ValueError:  # NaN, which is no declared value
        return ""
