"""Make a suite's current records and report the reference."""

from __future__ import annotations

from typing import Annotated

import typer


def accept(
    suite: Annotated[str, typer.Argument(help="Name of a suite that lies in the checkout.")],
    reason: Annotated[str, typer.Option(help="Why; kept beside the reference in ACCEPTED.md.")],
) -> None:
    """Make a suite's current records and report the reference that `check` compares with.

    Needs every record of the suite; refuses failed ones. Writes reports/reference/SUITE, all or
    nothing, and commits nothing.
    """
    from benchmarks.checking.accept import accept_suite
    from benchmarks.toml_files import shown

    folder = accept_suite(suite, reason)
    typer.echo(f"accepted: {shown(folder)} (look at the difference, then commit it)")
