"""The main job: fetch what is missing, run, report and check a suite.

A failed point does not stop the report or the check; the worst exit code of the three is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from benchmarks.cli.options import (
    DataOption,
    EngineOption,
    JobsOption,
    OnlyOption,
    SuiteArgument,
    use_data,
)


def bench(
    suite: SuiteArgument = "quick",
    only: OnlyOption = None,
    engine: EngineOption = "local",
    jobs: JobsOption = None,
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Render the report.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if a claim is undecided or unmeasured.")
    ] = False,
    data: DataOption = None,
) -> None:
    """Fetch, run, report and check a suite."""
    from benchmarks.cli.check import check
    from benchmarks.cli.fetch import fetch
    from benchmarks.cli.report import report
    from benchmarks.cli.run import run

    use_data(data)
    fetch([suite])
    codes = [
        _code(run, suite, only=only, engine=engine, jobs=jobs, report=with_report),
        _code(report, suite) if with_report else 0,
        _code(check, suite, strict=strict),
    ]
    if max(codes):
        raise typer.Exit(max(codes))


def _code(command: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    try:
        command(*arguments, **options)
    except typer.Exit as done:
        if done.exit_code == 130:
            raise
        return done.exit_code
    return 0
