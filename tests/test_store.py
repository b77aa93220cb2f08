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

from benchmarks.errors import MeterError, StorageError
from benchmarks.planning.expand import expand
from benchmarks.planning.plan import wanted_records
from benchmarks.planning.points import Point
from benchmarks.planning.suite import parse_suite
from benchmarks.records import Environment, Key, Record, Value
from benchmarks.results import join
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


@pytest.mark.parametrize(
    ("meter", "value", "said"),
    [
        (
            "latency",
            {"name": "speedup", "context": {}},
            "context of speedup is empty, and must say batch_size",
        ),
        (
            "latency",
            {"name": "speedup", "context": {"batch_size": "many"}},
            "batch_size of speedup .*'many', and must be a whole number",
        ),
        (
            "latency",
            {"name": "latency", "context": {"batch_size": 1}},
            "must say batch_size and who",
        ),
        ("memory", {"name": "peak_memory", "context": {"k": 1}}, "must say batch_size"),
        ("deletion", {"name": "informative", "context": {}}, "must say layer or group and layers"),
        (
            "deletion",
            {"name": "informative", "context": {"group": "all", "layers": "all"}},
            "layers of informative .*'all', and must be FIRST-LAST",
        ),
        (
            "sparsity",
            {"name": "sparsity", "context": {"layer": 1.5}},
            "must say measure and queries",
        ),
        ("sparsity", {"name": "auprc", "context": {"layer": 1.5}}, "must be a whole number"),
    ],
)
def test_a_number_must_say_what_it_is_a_number_of(
    tmp_path: Path, meter: str, value: dict[str, Any], said: str
) -> None:
    path = RecordStore(tmp_path).write(record(meter=meter))
    edited = json.loads(path.read_text())
    edited["values"][0] |= {"unit": "ratio"} | value
    path.write_text(json.dumps(edited))
    with pytest.raises(StorageError, match=rf"{path.name}: .*{said}.*counts as missing"):
        read_record(path)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"value": math.nan}, "accuracy is nan, not a number"),
        ({"low": -math.inf, "high": 1.0}, "low of accuracy is -inf, not a number"),
        ({"high": math.inf}, "high of accuracy is inf, not a number"),
        (
            {"low": 0.6, "high": 0.7},
            r"accuracy is 0.5, and must lie in its own interval \[0.6, 0.7\]",
        ),
        ({"low": 0.5 + 1e-8}, "own interval"),
        ({"high": 0.4}, "own interval"),
        ({"n": -1}, "n of accuracy is -1, and must be at least 0"),
        ({"value": 1.2}, "accuracy is 1.2, and must be from 0 to 1"),
        ({"high": 1.2}, "high of accuracy is 1.2, and must be from 0 to 1"),
        ({"unit": "%"}, "accuracy has the unit '%', and must have 'fraction'"),
        ({"name": "macro_f1", "value": -0.1}, "macro_f1 is -0.1"),
        (
            {"name": "macs", "unit": "MACs", "value": -1, "context": {"stat": "p95"}},
            r"macs \(stat=p95\) is -1.0, and must be at least 0",
        ),
        ({"name": "parameters", "unit": "count", "value": -1}, "parameters is -1.0"),
        ({"name": "peak_memory", "unit": "bytes", "value": -1}, "peak_memory is -1.0"),
        ({"name": "latency", "unit": "s", "value": -1}, "latency is -1.0"),
    ],
)
def test_a_number_that_nothing_measures_is_not_believed(
    tmp_path: Path, value: dict[str, Any], said: str
) -> None:
    store = RecordStore(tmp_path)
    path = store.write(record())
    edited = json.loads(path.read_text())
    edited["values"][0] |= value
    path.write_text(json.dumps(edited))
    with pytest.raises(StorageError, match=rf"{path.name}: .*{said}.*counts as missing"):
        read_record(path)
    with pytest.warns(DamagedRecordWarning):
        assert not store.exists(record().point_id, "accuracy", "a" * 64)
    written = Value.model_validate(edited["values"][0])
    with pytest.raises(MeterError, match=said):
        store.write(record(values=[written]))


def test_a_series_with_infinity_in_it_is_not_believed(tmp_path: Path) -> None:
    path = RecordStore(tmp_path).write(record(series={"loss": [1.5]}))
    path.write_text(path.read_text().replace("1.5", "1e999"))
    with pytest.raises(StorageError, match=r"series.loss\[0\] is inf, not a number"):
        read_record(path)


@pytest.mark.parametrize("interval", [(0.5, 0.5), (0.5 + 1e-12, 0.9), (0.1, 0.5 - 1e-12)])
def test_rounding_puts_no_value_outside_its_interval(
    tmp_path: Path, interval: tuple[float, float]
) -> None:
    low, high = interval
    values = [
        Value(name="accuracy", value=0.5, low=low, high=high, unit="fraction"),
        Value(name="accuracy_drop", value=-0.5, low=-high, high=-low, unit="fraction"),
    ]
    assert read_record(RecordStore(tmp_path).write(record(values=values))).values == values


@pytest.mark.parametrize("content", [b"[" * 100_000, b"1" * 5000, b"[]", b"null"])
def test_a_file_that_is_no_record_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    path = RecordStore(tmp_path).write(record())
    path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"{path.name}.* counts as missing"):
        read_record(path)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("gone", [True, False])
def test_a_record_without_its_arrays_counts_as_missing(
    tmp_path: Path, *, flat: bool, gone: bool
) -> None:
    store = RecordStore(tmp_path, flat=flat)
    beside = store.write(record(), pd.DataFrame({"row_id": [1]})).with_suffix(".parquet")
    if gone:
        beside.unlink()
    else:
        beside.write_bytes(b"x")
    said = f"{beside.name} is {'missing' if gone else 'not the file'}.* counts as missing"
    with pytest.warns(DamagedRecordWarning, match=said):
        assert not store.exists(record().point_id, "accuracy", "a" * 64)
    with pytest.warns(DamagedRecordWarning, match=said):
        assert store.all() == []
    store.write(record(), pd.DataFrame({"row_id": [1]}))
    assert store.exists(record().point_id, "accuracy", "a" * 64)


def test_what_cannot_be_used_is_not_counted_as_outdated(tmp_path: Path) -> None:
    suite = {
        "schema": 1,
        "title": "One point",
        "sweep": [
            {
                "name": "only", "datasets": ["random-tokens"], "max_length": 64,
                "meters": ["flops"], "trained": False,
                "variants": [{"label": "dense", "model": "dense"}],
            }
        ],
    }  # fmt: skip
    expansion = expand(parse_suite(suite, tmp_path / "one.toml"))
    (wanted,) = wanted_records(expansion)
    point = wanted.point
    names = {"meter": "flops", "point_id": point.point_id, "group_id": point.group_id}
    made = record(**names, point=point.declared(), seed=point.seed, values=[], key=wanted.key)
    old = made.model_copy(update={"key": wanted.key.model_copy(update={"cache_key": "a" * 64})})
    for any_key, flat in ((False, False), (True, True)):
        store = RecordStore(tmp_path / str(flat), flat=flat)
        store.write(old)
        path = store.write(made)
        results = join(expansion, store, any_key=any_key)
        assert (len(results.found), results.stale, results.damaged) == (1, 1, 0)
        path.write_text("{")
        with pytest.warns(DamagedRecordWarning, match=path.name):
            results = join(expansion, store, any_key=any_key)
        left = 0 if any_key else 1  # without a key to fit, the older one is found instead
        assert (len(results.missing), results.stale, results.damaged) == (left, left, 1)


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
