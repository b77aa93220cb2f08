"""Runs what a suite still misses, stage by stage, and leaves a record of everything.

Ctrl-C or kill -9 loses only what is in flight; running again does only what is missing.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from filelock import FileLock, Timeout

from benchmarks.catalog import ENGINES
from benchmarks.errors import BusyError, DataError
from benchmarks.planning.plan import Plan, PointTask, SampleTask, make_plan
from benchmarks.running.files import storage_errors, write_atomically
from benchmarks.running.jobs import Outcome, combine_samples, store_failures
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from benchmarks.planning.plan import Measurable
    from benchmarks.planning.suite import Suite
    from benchmarks.records import Failure

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
    without: Collection[str] = (),
    engine: str = "local",
    jobs: int | None = None,
) -> RunResult:
    """Runs everything of `suite` that has no record yet.

    Args:
        suite: a validated suite.
        runs: working state.
        watcher: is told what happens.
        only: see `make_plan`.
        without: likewise.
        engine: name of the engine.
        jobs: point tasks side by side; None means one a core.

    Raises:
        BusyError: another run uses `runs`.
        DataError: a data package is missing; nothing has been run.
        StorageError: the disk is full or read-only; what was finished is kept.
    """
    start = ENGINES.get(engine)
    store = RecordStore(runs / "records")
    result = RunResult()
    with exclusive_use(runs, suite.name):
        plan = make_plan(suite, store, only=only, without=without)
        watcher.plan(plan)
        require_data(plan)
        if not plan.stages:
            return result
        with start(runs, jobs) as workers:
            blocked: dict[str, Failure] = {}
            for stage in plan.stages:
                beside = [t for t in plan.point_tasks if t.stage == stage]
                for task, outcome in workers.run_beside(beside, watcher.progress, blocked):
                    _settle(task, outcome, store, result, watcher)
                    if outcome.blocks:
                        blocked[task.task_id] = outcome.failures[0]
                alone = [t for t in plan.sample_tasks if t.stage == stage]
                runnable = _runnable(alone, blocked, store, result)
                for task, outcome in workers.run_alone(runnable, watcher.progress):
                    _settle(task, outcome, store, result, watcher)
                    _combine(task, runnable, runs)
                watcher.stage_ended(stage)
    return result


def _runnable(
    tasks: Sequence[SampleTask],
    blocked: Mapping[str, Failure],
    store: RecordStore,
    result: RunResult,
) -> list[SampleTask]:
    """The tasks without the records of points that have no weights; those get failed records."""
    runnable = []
    for task in tasks:
        causes = {m.key.cache_key: _cause(m, blocked) for m in task.records}
        kept = tuple(m for m in task.records if causes[m.key.cache_key] is None)
        if kept:
            runnable.append(replace(task, records=kept))
        for measurable in task.records if task.replicate == 0 else ():
            cause = causes[measurable.key.cache_key]
            if cause is not None:
                store_failures([measurable], cause, store)
                lost = replace(task, records=(measurable,))
                result.failures.append((lost, Outcome(task.task_id, 0.0, (cause,))))
    return runnable


def _cause(measurable: Measurable, blocked: Mapping[str, Failure]) -> Failure | None:
    points = [measurable.point, *([measurable.baseline] if measurable.baseline else [])]
    return next((blocked[p.point_id] for p in points if p.point_id in blocked), None)


def _settle(
    task: Task, outcome: Outcome, store: RecordStore, result: RunResult, watcher: Watcher
) -> None:
    result.n_tasks += 1
    if outcome.failures:
        result.failures.append((task, outcome))
    if outcome.unrecorded:
        missing = [m for m in task.records if not m.is_done(store)]
        store_failures(missing, outcome.failures[0], store)
    watcher.ended(task, outcome)


def _combine(task: SampleTask, tasks: Sequence[SampleTask], runs: Path) -> None:
    """After the last sample of a group of records, makes their records."""
    fellows = [t for t in tasks if t.records == task.records]
    if task is fellows[-1]:
        for measurable in task.records:
            combine_samples(measurable, runs, len(fellows))


def require_data(plan: Plan) -> None:
    """Raises DataError, naming the command, if needed data are not here or were altered."""
    from benchmarks.data.card import find_card
    from benchmarks.data.fetch import data_path, is_available
    from benchmarks.data.weights import find_weights
    from benchmarks.data.weights_files import weights_available, weights_path

    points = [t.point for t in plan.point_tasks]
    points += [m.point for t in plan.sample_tasks for m in t.records]
    cards = {name: find_card(name) for name in sorted({point.dataset for point in points})}
    starts = sorted({point.pretrained for point in points if point.pretrained is not None})
    missing = [name for name, card in cards.items() if not is_available(card)]
    missing += [name for name in starts if not weights_available(find_weights(name))]
    if missing:
        raise DataError(
            f"data not here yet: {', '.join(missing)}. Fetch it with "
            f"`frugalbench fetch {' '.join(missing)}`; then run the same command again."
        )
    for card in cards.values():
        if not card.is_generated:
            data_path(card)
    for name in starts:
        weights_path(find_weights(name))


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
