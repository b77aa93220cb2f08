"""The engine and the runner: a failure or a death takes down its own point only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from benchmarks.errors import BusyError, StorageError
from benchmarks.meters.interface import MeterSpec
from benchmarks.planning.expand import PlannedPoint
from benchmarks.planning.plan import Measurable, PointTask, SampleTask
from benchmarks.planning.points import Point
from benchmarks.records import Failure, Key
from benchmarks.running.jobs import Outcome, combine_samples, sample_path
from benchmarks.running.local import LocalEngine
from benchmarks.running.runner import RunResult, _runnable, exclusive_use
from benchmarks.running.store import RecordStore

FAKE_METERS = """
import os
from benchmarks.meters.interface import Measurement
from benchmarks.records import Value

def measure(subject, options):
    if subject.point.seed == options.get("die_at"):
        os.kill(os.getpid(), 9)
    if subject.point.seed == options.get("fail_at"):
        raise RuntimeError(f"no luck in {__file__}")
    return Measurement(values=[Value(name="seed", value=subject.point.seed, unit="count")])

class Twice:
    def sample(self, items, replicate, options):
        return [{"process": os.getpid(), "replicate": replicate, "x": 2.0} for _ in items]

    def combine(self, samples, options):
        assert len({s["process"] for s in samples}) == len(samples)
        return Measurement(values=[Value(name="x", value=sum(s["x"] for s in samples), unit="s")])
"""


@pytest.fixture
def fake_meters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module that worker processes can import too."""
    (tmp_path / "fake_meters.py").write_text(FAKE_METERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "fake_meters"


def measurable(seed: int, target: str, options: Mapping[str, Any] | None = None) -> Measurable:
    point = Point("dense", {}, "random-tokens", 8, recipe=None, seed=seed, label="dense")
    spec = MeterSpec(name="fake", target=target, summary="", needs_training=False, replicates=3)
    planned = PlannedPoint(point, "main", 0, ("fake",), None, {})
    key = Key(cache_key=f"{seed:064x}", source="", data="", libraries={})
    return Measurable(spec, planned, None, key, options or {})


def point_task(seed: int, target: str, *, needs: tuple[str, ...] = (), **options: Any) -> PointTask:
    wanted = measurable(seed, f"{target}:measure", options)
    return PointTask(wanted.point.point_id, 0, wanted.point, (wanted,), needs, 1.0)


def nothing(task: Any, state: Mapping[str, Any]) -> None:
    pass


def test_a_failure_and_a_death_leave_the_other_points_alone(
    own_runs: Path, fake_meters: str
) -> None:
    tasks = [point_task(seed, fake_meters, fail_at=1, die_at=2) for seed in range(4)]
    outcomes: dict[str, Outcome] = {}
    with LocalEngine(own_runs, jobs=2) as engine:
        for task, outcome in engine.run_beside(tasks, nothing):
            outcomes[task.task_id] = outcome
    failed, died = outcomes[tasks[1].task_id], outcomes[tasks[2].task_id]
    assert [f.type for f in failed.failures] == ["RuntimeError"]
    assert "SIGKILL" in died.failures[0].message
    assert died.unrecorded
    records = {r.seed: r for r in RecordStore(own_runs / "records").all()}
    assert {seed: r.status for seed, r in records.items()} == {0: "ok", 1: "failed", 3: "ok"}
    assert records[1].failure is not None
    assert "no luck in fake_meters.py" in records[1].failure.traceback
    assert records[3].values[0].value == 3


def test_what_depends_on_a_dead_point_says_so_and_does_not_run(
    own_runs: Path, fake_meters: str
) -> None:
    first = point_task(0, fake_meters, die_at=0)
    second = point_task(1, fake_meters, needs=(first.task_id,))
    third = point_task(2, fake_meters, needs=(second.task_id,))
    with LocalEngine(own_runs, jobs=1) as engine:
        outcomes = [outcome for _, outcome in engine.run_beside([third, second, first], nothing)]
    assert [o.failures[0].type for o in outcomes] == ["WorkerDied", "SourceFailed", "SourceFailed"]
    assert RecordStore(own_runs / "records").all() == []


def sample_tasks(wanted: Measurable) -> list[SampleTask]:
    return [SampleTask(str(i), 0, wanted.meter, (wanted,), i, (), 1.0) for i in range(3)]


def test_samples_come_from_processes_of_their_own_and_make_one_record(
    own_runs: Path, fake_meters: str
) -> None:
    wanted = measurable(0, f"{fake_meters}:Twice")
    tasks = sample_tasks(wanted)
    with LocalEngine(own_runs) as engine:
        list(engine.run_alone(tasks[:2], nothing))
        assert not combine_samples(wanted, own_runs, 3)
        before = sample_path(own_runs, wanted, 0).read_bytes()
        list(engine.run_alone(tasks, nothing))  # a second run adds only what is missing
        assert sample_path(own_runs, wanted, 0).read_bytes() == before
    assert combine_samples(wanted, own_runs, 3)
    (record,) = RecordStore(own_runs / "records").all()
    assert (record.values[0].value, record.weights_seed) == (6.0, 0)
    assert not list((own_runs / "samples").iterdir())


def test_a_point_without_weights_takes_only_its_own_timed_records_down(own_runs: Path) -> None:
    good, bad = measurable(0, "x:Twice"), measurable(1, "x:Twice")
    tasks = [SampleTask(str(i), 0, good.meter, (good, bad), i, (), 1.0) for i in range(3)]
    store, result = RecordStore(own_runs / "records"), RunResult()
    cause = Failure(type="E", message="diverged", traceback="")
    kept = _runnable(tasks, {bad.point.point_id: cause}, store, result)
    assert [task.records for task in kept] == [(good,)] * 3
    (record,) = store.all()
    assert (record.seed, record.status, record.failure) == (1, "failed", cause)
    assert [task.records for task, _ in result.failures] == [(bad,)]
    assert not result.ok


def test_a_source_that_failed_in_an_earlier_stage_is_not_tried_again(own_runs: Path) -> None:
    task = point_task(1, "x", needs=("gone",))
    cause = Failure(type="E", message="diverged", traceback="")
    with LocalEngine(own_runs, jobs=1) as engine:
        ((_, outcome),) = engine.run_beside([task], nothing, {"gone": cause})
    assert outcome.failures[0].message == "the point this one depends on failed: diverged"


def test_a_second_run_is_told_who_holds_the_folder(own_runs: Path) -> None:
    said = rf"process {os.getpid()} \(suite 'quick', since 20"
    with exclusive_use(own_runs, "quick"), pytest.raises(BusyError, match=said):
        exclusive_use(own_runs, "smoke").__enter__()
    with exclusive_use(own_runs, "smoke"):
        pass


def test_a_lock_left_by_a_killed_run_does_not_block(own_runs: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from benchmarks.running.runner import exclusive_use\n"
        "with exclusive_use(Path(sys.argv[1]), 'quick'): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(own_runs)], check=False)
    assert json.loads((own_runs / "run.lock.json").read_text())["suite"] == "quick"
    with exclusive_use(own_runs, "smoke"):
        pass


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with (
        pytest.raises(StorageError, match=r"cannot write .*run\.lock"),
        exclusive_use(blocked, "x"),
    ):
        pass


def test_a_stored_sample_is_only_read_by_its_own_key(own_runs: Path) -> None:
    one, other = measurable(0, "x:Twice"), measurable(1, "x:Twice")
    assert sample_path(own_runs, one, 0) != sample_path(own_runs, other, 0)


def test_the_lock_is_an_ordinary_file_lock(own_runs: Path) -> None:
    own_runs.mkdir()
    said = "in use by another process"
    with FileLock(own_runs / "run.lock"), pytest.raises(BusyError, match=said):
        exclusive_use(own_runs, "quick").__enter__()
