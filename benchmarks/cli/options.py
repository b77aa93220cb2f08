"""Arguments and options that several subcommands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

SuiteArgument = Annotated[str, typer.Argument(help="Name of a suite, or path of a suite file.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Only points with this label, data set, model, sweep or point id."),
]
EngineOption = Annotated[str, typer.Option(help="Where points run.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Trainings side by side; default: one per core.")
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

    if path is not None:
        os.environ[VARIABLE] = str(path.expanduser().absolute())
    manifest = manifest_in_use()
    if manifest is not None:
        mirror_root(read_manifest(manifest), manifest)
