"""Runs what a suite still misses, stage by stage, and leaves a record of everything.

Ctrl-C or kill -9 loses only what is in flight; running again does only what is missing.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from filelock import FileLock, Timeout

from benchmarks.catalog import DATASETS, ENGINES
from benchmarks.errors import BusyError, DataError
from benchmarks.planning.plan import Plan, PointTask, SampleTask, make_plan
from benchmarks.running.files import storage_errors, write_atomically
from benchmarks.running.jobs import Outcome, combine_samples, store_failures
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from benchmarks.planning.suite import Suite

Task = PointTask | SampleTask


class Watcher(Protocol):
    """What the command line shows while a suite runs."""

    def plan(self, plan: Plan) -> None:
        """The plan, before anything runs."""

    def progress(self, task: Task, state: Mapping[str, Any]) -> None:
        """A task says what it is doing."""

    def ended(self, task: Task, outcome: Outcome) -> None:
        """A task has ended."""

    def stage_ended(self, stage: int) -> None:
        """All of a stage is done; a report of what there is makes sense now."""


@dataclass
class RunResult:
    """How a run ended: how many tasks ran, and what failed."""

    n_tasks: int = 0
    failures: list[tuple[Task, Outcome]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


def run_suite(
    suite: Suite,
    runs: Path,
    watcher: Watcher,
    *,
    only: Sequence[str] = (),
    engine: str = "local",
    jobs: int | None = None,
) -> RunResult:
    """Runs everything of `suite` that has no record yet.

    Args:
        suite: a validated suite.
        runs: working state.
        watcher: is told what happens.
        only: see `make_plan`.
        engine: name of the engine.
        jobs: point tasks side by side; None means one a core.

    Raises:
        BusyError: another run uses `runs`.
        DataError: a data package is missing; nothing has been run.
        StorageError: the disk is full or read-only; what was finished is kept.
    """
    store = RecordStore(runs / "records")
    result = RunResult()
    with exclusive_use(runs, suite.name):
        plan = make_plan(suite, store, only=only)
        watcher.plan(plan)
        require_data(plan)
        if not plan.stages:
            return result
        with ENGINES.get(engine)(runs, jobs) as workers:
            for stage in plan.stages:
                beside = [t for t in plan.point_tasks if t.stage == stage]
                alone = [t for t in plan.sample_tasks if t.stage == stage]
                blocked: dict[str, Outcome] = {}
                for task, outcome in workers.run_beside(beside, watcher.progress):
                    _settle(task, outcome, store, result, watcher)
                    if outcome.blocks:
                        blocked[task.task_id] = outcome
                runnable = []
                for sample in alone:
                    cause = next((blocked[n] for n in sample.needs if n in blocked), None)
                    if cause is None:
                        runnable.append(sample)
                    elif sample.replicate == 0:
                        store_failures(sample.records, cause.failures[0], store)
                for task, outcome in workers.run_alone(runnable, watcher.progress):
                    _settle(task, outcome, store, result, watcher)
                    _combine(task, runnable, runs)
                watcher.stage_ended(stage)
    return result


def _settle(
    task: Task, outcome: Outcome, store: RecordStore, result: RunResult, watcher: Watcher
) -> None:
    result.n_tasks += 1
    if outcome.failures:
        result.failures.append((task, outcome))
    if outcome.unrecorded:
        missing = [m for m in task.records if not _is_ok(m.existing(store))]
        store_failures(missing, outcome.failures[0], store)
    watcher.ended(task, outcome)


def _is_ok(record: Any) -> bool:
    return record is not None and record.status == "ok"


def _combine(task: SampleTask, tasks: Sequence[SampleTask], runs: Path) -> None:
    """After the last sample of a group of records, makes their records."""
    fellows = [t for t in tasks if t.records == task.records]
    if task is fellows[-1]:
        for measurable in task.records:
            combine_samples(measurable, runs, len(fellows))


def require_data(plan: Plan) -> None:
    """Raises DataError, naming the command, if a task needs a data package that is not here."""
    from benchmarks.data.fetch import is_available

    needed = {t.point.dataset for t in plan.point_tasks}
    needed |= {m.point.dataset for t in plan.sample_tasks for m in t.records}
    missing = [name for name in sorted(needed) if not is_available(DATASETS.get(name))]
    if missing:
        raise DataError(
            f"data not here yet: {', '.join(missing)}. Fetch it with "
            f"`frugalbench fetch {' '.join(missing)}`; then run the same command again."
        )


@contextlib.contextmanager
def exclusive_use(runs: Path, what: str) -> Iterator[None]:
    """Holds the folder for one run: side by side, two would disturb each other's timing.

    Raises:
        BusyError: another process holds it; the text says which.
        StorageError: the folder cannot be written.
    """
    path, note = runs / "run.lock", runs / "run.lock.json"
    with storage_errors(path):
        runs.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise BusyError(
                f"{runs} is in use{_holder(note)}. Two runs at once would disturb each other's "
                "timing: wait for it to end, or stop it; what it has finished is kept."
            ) from None
    try:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        held = {"suite": what, "process": os.getpid(), "since": now}
        write_atomically(note, json.dumps(held).encode())
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _holder(note: Path) -> str:
    try:
        held = json.loads(note.read_text(encoding="utf-8"))
        return f" by process {held['process']} (suite '{held['suite']}', since {held['since']})"
    except (OSError, ValueError, KeyError):
        return " by another process"
