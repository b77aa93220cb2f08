"""Records on disk: whole or absent, never half."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import StorageError
from benchmarks.planning.points import Point
from benchmarks.records import Environment, Key, Record, Value
from benchmarks.running.files import write_atomically
from benchmarks.running.store import DamagedRecordWarning, RecordStore, read_record

ENVIRONMENT = Environment(
    python="3.11.7", libraries={"torch": "2.13.0"}, os="Linux x86_64", cpu="test", cores=2,
    memory_gib=4.0, threads=1,
)  # fmt: skip


def record(**changes: Any) -> Record:
    point = Point("dense", {"depth": 3}, "r8", 64, seed=1, label="dense")
    values: dict[str, Any] = {
        "meter": "accuracy",
        "kind": "point",
        "status": "ok",
        "point_id": point.point_id,
        "group_id": point.group_id,
        "label": "dense",
        "seed": 1,
        "point": point.declared(),
        "values": [Value(name="accuracy", value=0.5, unit="fraction", n=10)],
        "key": Key(cache_key="a" * 64, source="s", data="d", libraries={}),
        "environment": ENVIRONMENT,
        "created": "2026-01-01T00:00:00+00:00",
        "duration_s": 1.0,
    }
    return Record(**(values | changes))


@pytest.mark.parametrize("flat", [True, False])
def test_a_record_comes_back_as_it_was_with_its_arrays(tmp_path: Path, *, flat: bool) -> None:
    store = RecordStore(tmp_path, flat=flat)
    arrays = pd.DataFrame({"row_id": [3, 1], "prediction": [0, 1]})
    store.write(record(), arrays)
    (found,) = store.all()
    assert found.values == record().values
    assert found == store.find(found.point_id, "accuracy", "a" * 64)
    pd.testing.assert_frame_equal(store.read_arrays(found), arrays)  # type: ignore[arg-type]


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    context=st.dictionaries(st.text(min_size=1), st.integers() | st.text()),
    text=st.text(),
)
def test_any_values_survive_the_way_to_disk_and_back(
    tmp_path_factory: pytest.TempPathFactory, value: float, context: dict[str, Any], text: str
) -> None:
    store = RecordStore(tmp_path_factory.mktemp("store"))
    written = record(
        values=[Value(name="x", value=value, unit="s", context=context)], warnings=[text]
    )
    assert read_record(store.write(written)) == written


def test_another_key_is_another_record(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    store.write(record())
    assert store.find(record().point_id, "accuracy", "b" * 64) is None
    # the file name holds only the key's beginning: the key itself decides
    assert store.find(record().point_id, "accuracy", "a" * 63 + "b") is None


@pytest.mark.parametrize("cut", [0, 1, 200])
def test_a_half_written_record_is_named_and_counts_as_missing(tmp_path: Path, cut: int) -> None:
    store = RecordStore(tmp_path)
    path = store.write(record())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.warns(DamagedRecordWarning, match=path.name):
        assert not store.exists(record().point_id, "accuracy", "a" * 64)
    with pytest.warns(DamagedRecordWarning):
        assert store.all() == []
    store.write(record())
    assert store.exists(record().point_id, "accuracy", "a" * 64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 99}, "schema_version is 99"),
        ({"extra": 1}, "extra"),
        ({"seed": "x"}, "seed"),
        (
            {"point": {}},
            "point: these values are not those of [0-9a-f]{16}, so the file was edited",
        ),
        ({"point": record().point | {"dataset": "r52"}}, "point: .* edited"),
        ({"point": record().point | {"max_length": math.nan}}, "point: .* edited"),
        ({"baseline": record().point}, "baseline: these values are not those of None"),
    ],
)
def test_a_record_of_another_shape_says_which_field(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = RecordStore(tmp_path).write(record())
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StorageError, match=said):
        read_record(path)


def test_altered_arrays_are_refused(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    store.write(record(), pd.DataFrame({"row_id": [1]}))
    (found,) = store.all()
    beside = store.path_for(found).with_suffix(".parquet")
    beside.write_bytes(beside.read_bytes() + b"x")
    with pytest.raises(StorageError, match="not the file"):
        store.read_arrays(found)
    beside.unlink()
    with pytest.raises(StorageError, match="missing"):
        store.read_arrays(found)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_read_only_disk_is_one_message_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"finished")

    def fail(_: int) -> None:
        raise OSError(number, "no luck")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(StorageError, match=r"record\.json.*no luck.*everything finished is kept"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"finished"
    assert list(tmp_path.iterdir()) == [path]
