"""The option `--data`, which several subcommands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

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
