"""`frugalbench show`: where a point's records lie, what they rest on, and how to repeat them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cli.app import run
from benchmarks.planning.expand import expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite
from benchmarks.records import DataUsed, Environment, Key, Record, Value
from benchmarks.running.store import RecordStore

ENVIRONMENT = Environment(
    python="3.11.7", libraries={"torch": "2.13.0"}, os="Linux x86_64", cpu="test", cores=2,
    memory_gib=4.0, threads=1,
)  # fmt: skip


def record(point: Point) -> Record:
    return Record(
        meter="accuracy", kind="point", status="ok", point_id=point.point_id,
        group_id=point.group_id, label=point.label, seed=point.seed, point=point.declared(),
        data=DataUsed(name="r8", split="test", n=10, hash="h", partial=True, note="half of it"),
        values=[Value(name="accuracy", value=0.5, unit="fraction", n=10)],
        key=Key(cache_key="a" * 64, source="s", data="d", libraries={}), environment=ENVIRONMENT,
        created="2026-01-01T00:00:00+00:00", duration_s=1.0,
    )  # fmt: skip


def shown(point_id: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(["show", point_id]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_data_the_file_and_a_command_that_can_be_pasted_are_shown(
    own_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = expand(load_suite("quick")).points[0].point
    path = RecordStore(own_runs / "records").write(record(point))
    lines = shown(point.point_id[:12], capsys)
    assert f"  in {path.relative_to(own_runs)}" in lines
    assert "  on r8, 10 inputs of the test split (half of it)" in lines
    command, only = lines[-1].removeprefix("repeat: frugalbench ").split(" --only ")
    assert only == point.point_id
    suite = load_suite(command.removeprefix("run "))
    assert only in {planned.point.point_id for planned in expand(suite).points}


def test_a_point_of_no_suite_here_leaves_its_suite_to_be_named(
    own_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = Point("dense", {"depth": 17}, "r8", 64, seed=1, label="dense")
    RecordStore(own_runs / "records").write(record(point))
    assert shown(point.point_id, capsys)[-1] == (
        f"repeat: frugalbench run SUITE --only {point.point_id}"
    )


def test_accepted_records_are_found_and_each_is_shown_once(
    own_runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suites = load_suite("quick").path.parent
    folders = {"reference": tmp_path / "reference", "suites": suites}
    monkeypatch.setattr("benchmarks.paths.resource_dir", folders.__getitem__)
    monkeypatch.setattr("benchmarks.results.resource_dir", folders.__getitem__)
    point = Point("dense", {"depth": 17}, "r8", 64, seed=1, label="dense")
    accepted = RecordStore(tmp_path / "reference" / "quick" / "records", flat=True)
    path = accepted.write(record(point))
    assert f"  in {path}" in shown(point.point_id, capsys)
    RecordStore(own_runs / "records").write(record(point))
    lines = shown(point.point_id, capsys)
    assert [line for line in lines if line.startswith("  in ")] == [
        f"  in records/{point.point_id}/accuracy-{'a' * 12}.json"
    ]
    accepted.write(record(point).model_copy(update={"created": "2025-01-01T00:00:00+00:00"}))
    assert run(["show", point.point_id, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
