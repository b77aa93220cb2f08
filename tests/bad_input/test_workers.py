"""Worker processes that are killed from outside while they wait."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.planning.plan import make_plan
from benchmarks.planning.suite import load_suite
from benchmarks.running.local import LocalEngine
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from conftest import WriteSuite


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_an_idle_worker_that_is_killed_costs_nothing(
    write_suite: WriteSuite, own_runs: Path
) -> None:
    """The workers know no data set "tiny", so points fail there; but none fails by the death."""
    suite = load_suite(write_suite())
    tasks = make_plan(suite, RecordStore(own_runs / "records"), only=["dense", "low"]).point_tasks
    failures = []
    with LocalEngine(own_runs, jobs=1) as engine:
        for _, outcome in engine.run_beside(tasks, lambda *_: None):
            failures.append([failure.type for failure in outcome.failures])
            for worker in engine._workers:
                os.kill(worker.process.pid or 0, signal.SIGKILL)
                worker.process.join()
    assert failures == [["UsageError"], ["UsageError"]]
