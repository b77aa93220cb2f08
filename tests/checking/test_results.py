from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import benchmarks
from benchmarks.results import collect
from benchmarks.running.store import DamagedRecordWarning, RecordStore

if TYPE_CHECKING:
    from conftest import World


def test_table_is_tidy(world: World) -> None:
    world.fill()
    table = benchmarks.load_results("tiny")
    accuracy = table[(table["name"] == "accuracy") & (table["sweep"] == "main")]
    assert len(accuracy) == 9
    means = accuracy.groupby("label")["value"].mean()
    assert means["dense"] == pytest.approx(sum(world.accuracy["dense"]) / 3, abs=0.001)
    row = accuracy[(accuracy["label"] == "budget") & (accuracy["seed"] == 2)].iloc[0]
    assert (row["suite"], row["dataset"], row["model"]) == ("tiny", "r8", "budgetformer")
    assert (row["unit"], row["method"], row["n"], row["stage"]) == ("fraction", "wilson", 1000, 2)
    assert row["low"] < row["value"] < row["high"]
    speed = table[(table["name"] == "speedup") & (table["ctx_batch_size"] == 32)]
    assert set(speed["baseline_label"]) == {"dense"}
    assert set(speed["label"]) == {"budget", "no-attention"}


def test_a_point_of_two_sweeps_stands_in_both_but_is_one_record(world: World) -> None:
    world.fill()
    table = benchmarks.load_results("tiny")
    depths = table[(table["sweep"] == "depths") & (table["name"] == "macs")]
    assert set(depths["depth"]) == {1, 2}
    main = table[table["sweep"] == "main"]
    assert main["depth"].isna().all()
    assert set(depths["point_id"]) & set(main["point_id"])
    results = collect("tiny")
    names = [world.store.path_for(record) for record in results.records]
    assert len(names) == len(set(names)) == len(results.found)


def test_missing_failed_and_stale_are_told_apart(world: World) -> None:
    world.fill(without=[("budget", "memory")])
    gone = world.find("budget", 0, "memory")
    world.fail(world.find("dense", 1, "accuracy"))
    old = world.find("dense", 2, "accuracy")
    record = old.existing(world.store)
    assert record is not None
    assert record.arrays is not None
    path = world.store.path_for(record)
    path.unlink()
    key = record.key.model_copy(update={"cache_key": "0" * 64})
    world.store.write(record.model_copy(update={"key": key}))

    results = collect("tiny")
    assert {m.key.cache_key for m in results.missing} == {gone.key.cache_key, old.key.cache_key}
    assert results.stale == 1
    assert [(r.label, r.seed, r.meter) for r in results.failed] == [("dense", 1, "accuracy")]
    table = benchmarks.load_results("tiny")
    failed = table[table["status"] == "failed"]
    assert len(failed) == 1
    assert failed["value"].isna().all()


def test_reference_is_joined_by_identity_whatever_its_key(world: World) -> None:
    world.fill()
    folder = world.root / "reports/reference/tiny/records"
    wanted = world.find("dense", 0, "accuracy")
    record = wanted.existing(world.store)
    assert record is not None
    flat = RecordStore(folder, flat=True)
    for key, created in (("1" * 64, "2020-01-01"), ("2" * 64, "2021-01-01")):
        renamed = record.key.model_copy(update={"cache_key": key})
        update = {"key": renamed, "created": created}
        flat.write(record.model_copy(update=update), collect("tiny").arrays(record))
    reference = collect("tiny", reference=True)
    assert [r.key.cache_key for r in reference.records] == ["2" * 64]
    arrays = reference.arrays(reference.records[0])
    assert arrays is not None
    assert len(arrays) == 1000
    assert set(benchmarks.load_results("tiny", reference=True)["point_id"]) == {record.point_id}


@pytest.mark.parametrize("content", ["", '{"schema_version": 1, "met', '{"schema_version": 99}'])
def test_damaged_record_is_missing_and_named(world: World, content: str) -> None:
    world.fill()
    wanted = world.find("dense", 0, "memory")
    record = wanted.existing(world.store)
    assert record is not None
    world.store.path_for(record).write_text(content)
    with pytest.warns(DamagedRecordWarning, match=world.store.path_for(record).name):
        results = collect("tiny")
    assert [m.key.cache_key for m in results.missing] == [wanted.key.cache_key]
    with pytest.warns(DamagedRecordWarning):
        table = benchmarks.load_results("tiny")
    assert len(table[(table["name"] == "accuracy") & (table["sweep"] == "main")]) == 9


def test_other_working_state_can_be_read(world: World) -> None:
    world.fill()
    moved = world.root / "elsewhere"
    world.runs.rename(moved)
    assert collect("tiny").records == []
    assert not collect("tiny", runs=moved).missing
