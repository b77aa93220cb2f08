"""Arguments and options that several subcommands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from benchmarks.planning.suite import Suite

SuiteArgument = Annotated[str, typer.Argument(help="Name of a suite, or path of a suite file.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Only points with this label, data set, model, sweep or point id (or its beginning)."
    ),
]
EngineOption = Annotated[str, typer.Option(help="Where points run.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Trainings side by side; default: one per core.")
]
SkipMissingOption = Annotated[
    bool,
    typer.Option("--skip-missing", help="Leave out data sets that are not here, and say which."),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="PATH",
        help="A local mirror of hub sets: its folder, or its manifest; else FRUGALBENCH_DATA.",
    ),
]


def use_data(path: Path | None) -> None:
    """Makes a mirror that of this process and of those it starts; None changes nothing.

    Raises:
        DataError: there is no mirror.
        InvalidFileError: its manifest is wrong.
    """
    from benchmarks.data.mirror import VARIABLE, manifest_in_use, mirror_root, read_manifest
    from benchmarks.errors import DataError

    if path is not None:
        chosen = path.expanduser().absolute()
        if not chosen.exists():
            raise DataError(f"--data: there is no folder or manifest {chosen}")
        os.environ[VARIABLE] = str(chosen)
    manifest = manifest_in_use()
    if manifest is not None:
        mirror_root(read_manifest(manifest), manifest)


def absent_data(suite: Suite) -> list[str]:
    """The suite's data sets that are not here, sorted."""
    from benchmarks.data.card import find_card
    from benchmarks.data.fetch import is_available

    names = sorted({name for sweep in suite.sweeps for name in sweep.datasets})
    return [name for name in names if not is_available(find_card(name))]


def skipping(names: list[str]) -> list[str]:
    """One line for each data set that `--skip-missing` leaves out."""
    return [
        f"skipped  {name}: its data are not here (`frugalbench fetch {name}` brings them)"
        for name in names
    ]
