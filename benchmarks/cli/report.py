"""Write a suite's report from its records, complete or not; needs no torch and measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    suite: Annotated[
        str, typer.Argument(help="Name of a suite, or path of a suite file.")
    ] = "quick",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; default: runs/reports/SUITE.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Render the accepted reference instead.")
    ] = False,
) -> None:
    """Write a suite's report (Markdown and SVG) and print where it is."""
    from benchmarks.reporting.report import README, render

    typer.echo(render(suite, out=out, reference=reference) / README)
