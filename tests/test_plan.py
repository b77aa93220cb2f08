"""The plan: every wanted record once, sources first, and only what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UsageError
from benchmarks.planning.estimate import training_seconds
from benchmarks.planning.plan import Measurable, Plan, make_plan
from benchmarks.planning.suite import load_suite
from benchmarks.records import Failure, Value
from benchmarks.running.recording import make_record
from benchmarks.running.store import RecordStore

QUICK = load_suite("quick")
FAILURE = Failure(type="E", message="m", traceback="")


def store_ok(store: RecordStore, measurable: Measurable) -> None:
    record = make_record(measurable, FAILURE, duration_s=1.0)
    ok = record.model_copy(
        update={"status": "ok", "failure": None, "values": [Value(name="x", value=1, unit="s")]}
    )
    store.write(ok)


@pytest.fixture
def empty(tmp_path: Path) -> Plan:
    return make_plan(QUICK, RecordStore(tmp_path / "records"))


def test_every_wanted_record_belongs_to_exactly_one_task_or_group(empty: Plan) -> None:
    beside = [id(m) for task in empty.point_tasks for m in task.records]
    alone = [id(m) for task in empty.sample_tasks if task.replicate == 0 for m in task.records]
    assert sorted(beside + alone) == sorted(id(m) for m in empty.wanted)


def test_what_a_task_needs_comes_before_it_and_not_in_a_later_stage(empty: Plan) -> None:
    place = {task.task_id: i for i, task in enumerate(empty.point_tasks)}
    stage = {task.task_id: task.stage for task in empty.point_tasks}
    for i, task in enumerate(empty.point_tasks):
        assert all(place[need] < i and stage[need] <= task.stage for need in task.needs)
    for sample in empty.sample_tasks:
        assert all(stage[need] <= sample.stage for need in sample.needs)


def test_a_first_stage_alone_makes_a_complete_single_seed_report(empty: Plan) -> None:
    first = [m for m in empty.wanted if m.planned.stage == 0]
    assert {m.point.seed for m in first} == {0}
    assert {m.meter.name for m in first} == {
        "training", "accuracy", "flops", "memory", "latency", "carbon", "sparsity", "deletion",
    }  # fmt: skip
    sweeps = {"main", "s2s-teacher", "s2s-continued", "s2s-layers", "s2s-groups"}
    labels = {m.point.label for m in empty.wanted if m.planned.sweep in sweeps}
    assert {m.point.label for m in first} == labels


def test_timed_meters_look_at_the_first_seed_only(empty: Plan) -> None:
    timed = [m for m in empty.wanted if m.meter.first_seed_only and m.point.trained]
    assert {m.point.seed for m in timed} == {0}
    assert all(m.baseline.seed == 0 for m in timed if m.baseline)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(kept=st.sets(st.integers(0, 228)), failed=st.sets(st.integers(0, 228), max_size=5))
def test_only_what_is_missing_or_failed_is_planned_again(
    tmp_path_factory: pytest.TempPathFactory, kept: set[int], failed: set[int]
) -> None:
    store = RecordStore(tmp_path_factory.mktemp("records"))
    wanted = make_plan(QUICK, store).wanted
    kept = {i for i in kept if i < len(wanted)} - failed
    for i in kept:
        store_ok(store, wanted[i])
    for i in failed:
        store.write(make_record(wanted[i], FAILURE, duration_s=0))
    plan = make_plan(QUICK, store)
    assert [m.key for m in plan.done] == [wanted[i].key for i in sorted(kept)]
    assert len(plan.failed) == len(failed)
    again = [m.key for t in plan.point_tasks for m in t.records]
    again += [m.key for t in plan.sample_tasks if t.replicate == 0 for m in t.records]
    left = [m.key for i, m in enumerate(wanted) if i not in kept]
    assert sorted(k.cache_key for k in again) == sorted(k.cache_key for k in left)


def test_only_keeps_what_it_names_and_the_sources_it_needs(tmp_path: Path) -> None:
    plan = make_plan(QUICK, RecordStore(tmp_path), only=["fewer-heads"])
    assert {m.point.label for m in plan.wanted} == {"fewer-heads"}
    trained = {t.point.label for t in plan.point_tasks}
    assert trained == {"fewer-heads", "budget-low", "dense"}  # its source, and its timed baseline


def test_only_takes_the_beginning_of_an_id_but_not_of_a_name(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    wanted = make_plan(QUICK, store).wanted[0].point
    found = make_plan(QUICK, store, only=[wanted.point_id[:6]])
    assert {m.point.point_id for m in found.wanted} == {wanted.point_id}
    for word in (wanted.point_id[:5], "fewer-h"):
        with pytest.raises(UsageError, match=f"unknown .* '{word}'.*plan.*ids.*first 6 letters"):
            make_plan(QUICK, store, only=[word])


def test_a_point_goes_by_every_sweep_it_stands_in(tmp_path: Path) -> None:
    suite = load_suite("ablations")
    planned = {
        m.planned.point.point_id: m.planned for m in make_plan(suite, RecordStore(tmp_path)).wanted
    }
    shared = [p for p in planned.values() if {u.sweep for u in p.uses} == {"rounding", "starts"}]
    assert {p.point.seed for p in shared} == {0, 1, 2}  # the usual start, and floor
    for sweep in ("rounding", "starts"):
        found = make_plan(suite, RecordStore(tmp_path), only=[sweep])
        assert {p.point.point_id for p in shared} <= {m.point.point_id for m in found.wanted}


def test_a_point_that_shares_weights_costs_no_training(empty: Plan) -> None:
    seconds = {m.point.label: training_seconds(m.point) for m in empty.wanted if m.point.trained}
    assert seconds["random-at-test"] == 0
    assert seconds["dense"] > 0


@pytest.mark.parametrize("name", ["kernels", "kernels-small"])
def test_options_are_those_of_the_sweep_that_wants_the_meter(name: str, tmp_path: Path) -> None:
    """There the sweep that counts MACs names every point first, and others time it."""
    suite = load_suite(name)
    for measurable in make_plan(suite, RecordStore(tmp_path)).wanted:
        wanting = [
            sweep.name
            for sweep in suite.sweeps
            if measurable.meter.name in sweep.meters
            and sweep.name in {use.sweep for use in measurable.planned.uses}
        ]
        assert measurable.options == suite.options_for(wanting[0], measurable.meter.name)
        assert measurable.meter.name != "latency" or 8 in measurable.options["batch_sizes"]
