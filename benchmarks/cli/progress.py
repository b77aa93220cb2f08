"""What a run shows: one bar per working task on a terminal, one line per ended task elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from benchmarks.planning.plan import PointTask, SampleTask

if TYPE_CHECKING:
    from benchmarks.planning.plan import Plan
    from benchmarks.running.jobs import Outcome
    from benchmarks.running.runner import RunResult


class ConsoleWatcher:
    """Follows a run on the console.

    Args:
        stage_ended: called when a stage is complete.
        jobs: as given to the engine, for the estimate.
    """

    def __init__(self, stage_ended: Callable[[int], None], jobs: int | None = None) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._live = self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._stage_ended = stage_ended
        self._jobs = jobs
        self._bars: dict[str, TaskID] = {}
        self._overall: TaskID | None = None
        self._total = self._ended = 0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """Prints one line above the bars."""
        self._progress.console.print(text, markup=False)

    def plan(self, plan: Plan) -> None:
        """Says what is done and what remains, with a rough estimate."""
        from benchmarks.running.environment import usable_cores

        self._total = len(plan.point_tasks) + len(plan.sample_tasks)
        self.say(
            f"{plan.expansion.suite.name}: {len(plan.expansion.points)} points, "
            f"{len(plan.done)} of {len(plan.wanted)} records are here"
            + (f", {len(plan.failed)} failed before and are tried again" if plan.failed else "")
        )
        if self._total:
            minutes = plan.seconds(self._jobs or usable_cores()) / 60
            self.say(f"{self._total} tasks to run, roughly {minutes:.1f} min")
        self._overall = self._progress.add_task("all", total=self._total, note="")

    def progress(self, task: PointTask | SampleTask, state: Mapping[str, Any]) -> None:
        """Moves the task's bar: steps of training, or what is being measured."""
        if not self._live:
            return
        if task.task_id not in self._bars:
            self._bars[task.task_id] = self._progress.add_task(name_of(task), total=None, note="")
        bar = self._bars[task.task_id]
        if "doing" in state:
            self._progress.update(bar, note=str(state["doing"]))
            return
        parts = [f"loss {state['loss']:.3f}", f"acc {state['accuracy']:.3f}"]
        if state.get("mean_s") is not None:
            parts.append(f"s {state['mean_s']:.2f} k {state['mean_k']:.1f}")
        self._progress.update(
            bar, completed=state["step"], total=state["steps"], note="  ".join(parts)
        )

    def ended(self, task: PointTask | SampleTask, outcome: Outcome) -> None:
        """Takes the task's bar away; without a terminal, prints a line."""
        self._ended += 1
        if self._overall is not None:
            self._progress.advance(self._overall)
        bar = self._bars.pop(task.task_id, None)
        if bar is not None:
            self._progress.remove_task(bar)
        if outcome.failures:
            self.say(f"FAILED {name_of(task)}: {outcome.failures[0].message}")
        elif not self._live:
            self.say(
                f"[{self._ended}/{self._total}] {time.monotonic() - self._began:5.0f} s  "
                f"{name_of(task)} ({outcome.seconds:.1f} s)"
            )

    def stage_ended(self, stage: int) -> None:
        """Passes the news on."""
        self._stage_ended(stage)

    def summary(self, result: RunResult) -> None:
        """One closing line, and where to look."""
        took = time.monotonic() - self._began
        if not result.n_tasks:
            self.say("nothing to do: every record is here")
        elif result.ok:
            self.say(f"done: {result.n_tasks} tasks in {took:.0f} s")
        else:
            self.say(
                f"{len(result.failures)} of {result.n_tasks} tasks failed; the others are kept. "
                "`frugalbench show POINT` prints a failed point's traceback:"
            )
            for task, _ in result.failures:
                for point in {m.point.point_id: m.point for m in task.records}.values():
                    self.say(
                        f"  {point.point_id}  {point.label} on {point.dataset}, seed {point.seed}"
                    )


def name_of(task: PointTask | SampleTask) -> str:
    """A task in a few words."""
    if isinstance(task, PointTask):
        point = task.point
        planned = task.records[0].planned if task.records else None
        axes = "".join(f", {k} {v}" for k, v in planned.axes.items()) if planned else ""
        return f"{point.dataset} {point.label} seed {point.seed}{axes}"
    first = task.records[0]
    return (
        f"{task.meter.name} {first.planned.sweep} {first.point.dataset}, {len(task.records)} "
        f"record(s), process {task.replicate + 1}"
    )
