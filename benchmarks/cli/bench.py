"""The main job: fetch what is missing, run, report and check a suite.

A failed point does not stop the report or the check; the worst exit code of the three is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from benchmarks.cli.data_option import DataOption, use_data


def bench(
    suite: Annotated[
        str, typer.Argument(help="Name of a suite, or path of a suite file.")
    ] = "quick",
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only points with this label, data set, model, sweep or point id."),
    ] = None,
    engine: Annotated[str, typer.Option(help="Where points run.")] = "local",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Trainings side by side; default: one per core.")
    ] = None,
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Render the report.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if a claim is undecided.")
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
