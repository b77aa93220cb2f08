"""Run what a suite still misses.

Trains and measures in worker processes. Ctrl-C keeps everything finished, and running again does
only what is missing. Exit code 1 if a point failed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Annotated

import typer

from benchmarks.cli.options import (
    DataOption,
    EngineOption,
    JobsOption,
    OnlyOption,
    SkipMissingOption,
    SuiteArgument,
    absent_data,
    skipping,
    use_data,
)


def run(
    suite: SuiteArgument,
    only: OnlyOption = None,
    engine: EngineOption = "local",
    jobs: JobsOption = None,
    report: Annotated[
        bool, typer.Option("--report", help="Render the report anew after each stage.")
    ] = False,
    data: DataOption = None,
    skip_missing: SkipMissingOption = False,
) -> None:
    """Run what a suite still misses."""
    from benchmarks.cli.progress import ConsoleWatcher
    from benchmarks.paths import runs_dir
    from benchmarks.planning.suite import load_suite
    from benchmarks.running.runner import run_suite

    use_data(data)
    loaded = load_suite(suite)
    runs = runs_dir()
    absent = absent_data(loaded) if skip_missing else []

    def stage_ended(_: int) -> None:
        if report:
            watcher.say(_render(suite))

    watcher = ConsoleWatcher(stage_ended, jobs)
    with watcher:
        for line in skipping(absent):
            watcher.say(line)
        try:
            result = run_suite(
                loaded, runs, watcher, only=only or (), without=absent, engine=engine, jobs=jobs
            )
        except KeyboardInterrupt:
            watcher.say("stopped; what was finished is kept. Run the same command to go on.")
            raise typer.Exit(130) from None
        watcher.summary(result)
    if not result.ok:
        raise typer.Exit(1)


def _render(suite: str) -> str:
    """Renders in a process of its own, so that plotting never shares one with the engine.

    Returns:
        A line that says where the report is, or why there is none.
    """
    command = [sys.executable, "-m", "benchmarks", "report", suite]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return f"{shlex.join(command[1:])} failed:\n{done.stderr.strip() or done.stdout.strip()}"
    return f"a report of what there is so far: {done.stdout.strip()}"
