"""The local engine: this machine's worker processes.

Point tasks run side by side in workers that live on; a sample task gets a fresh process and the
machine to itself. A worker that dies takes down only its own task.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from benchmarks.errors import FrugalbenchError
from benchmarks.planning.plan import PointTask, SampleTask
from benchmarks.records import Failure
from benchmarks.running.environment import usable_cores
from benchmarks.running.jobs import Outcome, sample_path
from benchmarks.running.worker import THREAD_VARIABLES, THREADS, worker_main

Task = PointTask | SampleTask
Progress = Callable[[Task, Mapping[str, Any]], None]


class _Worker:
    def __init__(self, runs: Path, core: int | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, child = context.Pipe()
        with _one_thread():
            self.process = context.Process(
                target=worker_main, args=(child, runs, core), daemon=True
            )
            self.process.start()
        child.close()
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        self.connection.send(task)

    def stop(self) -> None:
        with contextlib.suppress(OSError, BrokenPipeError):
            self.connection.send(None)
        self.connection.close()
        self.process.join(timeout=2)
        self.kill()

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


class LocalEngine:
    """Runs tasks in processes of this machine.

    Args:
        runs: working state (records, artifacts, samples).
        jobs: point tasks side by side; None means one for each usable core.
    """

    def __init__(self, runs: Path, jobs: int | None = None) -> None:
        self.runs = runs
        self.jobs = jobs or usable_cores()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def run_beside(
        self,
        tasks: Sequence[PointTask],
        progress: Progress,
        failed: Mapping[str, Failure] = MappingProxyType({}),
    ) -> Iterator[tuple[PointTask, Outcome]]:
        """Runs point tasks, each after the tasks it needs, `jobs` at a time.

        Args:
            tasks: what to run.
            progress: is told what each task says it is doing.
            failed: points without weights from earlier, by id; what needs them does not run.

        Yields:
            Each task with its outcome, as they end. A task whose source failed ends at once, with
            the source's failure as the reason.

        Raises:
            FrugalbenchError: nothing further can run (disk full, data package missing).
        """
        waiting = list(tasks)
        open_ids = {task.task_id for task in tasks}
        broken = dict(failed)
        idle: list[_Worker] = []
        busy: dict[Connection, _Worker] = {}
        while waiting or busy:
            while (task := _first_broken(waiting, broken)) is not None:
                waiting.remove(task)
                open_ids.discard(task.task_id)
                failure = _source_failure(broken[next(n for n in task.needs if n in broken)])
                broken[task.task_id] = failure
                yield task, Outcome(task.task_id, 0.0, (failure,), blocks=True, unrecorded=True)
            for ready in [t for t in waiting if not open_ids.intersection(t.needs)]:
                if len(busy) >= self.jobs:
                    break
                worker = self._idle(idle) or self._start()
                waiting.remove(ready)
                worker.give(ready)
                busy[worker.connection] = worker
            for connection in wait(list(busy)) if busy else []:
                assert isinstance(connection, Connection)  # noqa: S101 - we gave nothing else
                worker = busy[connection]
                outcome = self._receive(worker, progress)
                if outcome is None:
                    continue
                ended = worker.task
                assert isinstance(ended, PointTask)  # noqa: S101 - we gave nothing else
                del busy[connection]
                open_ids.discard(ended.task_id)
                if worker.process.is_alive():
                    idle.append(worker)
                if outcome.blocks:
                    broken[ended.task_id] = outcome.failures[0]
                yield ended, outcome
        for worker in idle:
            worker.stop()
            self._workers.remove(worker)

    def run_alone(
        self, tasks: Sequence[SampleTask], progress: Progress
    ) -> Iterator[tuple[SampleTask, Outcome]]:
        """Runs sample tasks one after the other, each in a fresh process that stays on one core.

        Yields:
            Each task with its outcome.
        """
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
        for task in tasks:
            if all(sample_path(self.runs, m, task.replicate).is_file() for m in task.records):
                yield task, Outcome(task.task_id, 0.0)  # here from an interrupted run
                continue
            worker = self._start(core=cores[-1 - task.replicate % len(cores)])
            worker.give(task)
            outcome = None
            while outcome is None:
                outcome = self._receive(worker, progress)
            worker.stop()
            self._workers.remove(worker)
            yield task, outcome

    def _idle(self, idle: list[_Worker]) -> _Worker | None:
        """Takes a worker that lives out of `idle`; one that was killed meanwhile is forgotten."""
        while idle:
            worker = idle.pop()
            if worker.process.is_alive():
                return worker
            self._workers.remove(worker)
        return None

    def _start(self, core: int | None = None) -> _Worker:
        worker = _Worker(self.runs, core)
        self._workers.append(worker)
        return worker

    def _receive(self, worker: _Worker, progress: Progress) -> Outcome | None:
        """Handles one message; returns the outcome if the worker's task has ended."""
        assert worker.task is not None  # noqa: S101 - only busy workers are listened to
        try:
            kind, content = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join()
            self._workers.remove(worker)
            failure = _death(worker.process.exitcode)
            return Outcome(worker.task.task_id, 0.0, (failure,), blocks=True, unrecorded=True)
        if kind == "progress":
            progress(worker.task, content)
            return None
        if kind == "broken":
            error_type, text = content
            if issubclass(error_type, FrugalbenchError):
                raise error_type(text)
            failure = Failure(type="WorkerError", message=text.splitlines()[-1], traceback=text)
            return Outcome(worker.task.task_id, 0.0, (failure,), blocks=True, unrecorded=True)
        assert isinstance(content, Outcome)  # noqa: S101 - the only kind left is "done"
        return content


def _first_broken(waiting: Sequence[PointTask], broken: Mapping[str, Failure]) -> PointTask | None:
    return next((t for t in waiting if any(need in broken for need in t.needs)), None)


def _death(exit_code: int | None) -> Failure:
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        text = f"the worker process was ended by {name}{hint}"
    else:
        text = f"the worker process ended by itself with exit code {exit_code}"
    return Failure(type="WorkerDied", message=text, traceback="")


def _source_failure(failure: Failure) -> Failure:
    told = "the point this one depends on failed: "
    return Failure(
        type="SourceFailed",
        message=told + failure.message.removeprefix(told),
        traceback=failure.traceback,
    )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Children read these when they load torch; the parent's own environment is left as it was."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
