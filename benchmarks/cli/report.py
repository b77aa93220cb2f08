"""Write a suite's report from its records, complete or not; needs no torch and measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.cli.options import DataOption, use_data
from benchmarks.errors import UsageError


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
    data: DataOption = None,
) -> None:
    """Write a suite's report (Markdown and SVG) and print where it is."""
    from benchmarks.reporting.report import README, render

    use_data(data)
    if out is not None and out.resolve() == Path.cwd():
        raise UsageError("--out must name a folder of the report's own, not the current one")
    written = render(suite, out=out, reference=reference)
    typer.echo(written.folder / README)
    if written.empty:
        typer.echo(written.empty.replace("**", "").replace("`", "'"), err=True)
