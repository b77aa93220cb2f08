"""A local mirror: a folder in the hub's layout, with a manifest of its own.

FRUGALBENCH_DATA (or `--data`) names the folder, which holds `mirror.toml`, or a manifest file that
says where the folder is. A set of a mirror never goes by the plain name of the set it stands for.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from benchmarks.data.card import Card, Counts, SplitRule
from benchmarks.data.image_reader import ImageReader
from benchmarks.data.sources import (
    HubSource,
    Inside,
    ParquetFile,
    ParquetPart,
    ParquetSource,
    Strict,
    explain,
)
from benchmarks.errors import DataError, InvalidFileError, suggest
from benchmarks.toml_files import read_toml, shown

VARIABLE = "FRUGALBENCH_DATA"
MANIFEST = "mirror.toml"


class MirroredSet(Strict):
    """One set of a mirror."""

    card: str = Field(description="the hub card that it serves")
    folder: Inside = Field(description="below the mirror's root")
    run_as: str = Field(min_length=1, description="name under which results run")
    files: dict[str, tuple[ParquetFile, ...]] = Field(
        min_length=1, description="official split -> its files in order"
    )
    partial: dict[str, str] = Field(
        default_factory=dict, description="official split -> what of it is here"
    )
    lossy: str = Field(default="", description="what differs from the hub's content")
    resplit: str = Field(default="", description="which splits are not the official ones")
    splits: SplitRule | None = Field(default=None, description="instead of the card's own rule")
    images: ImageReader | None = Field(
        default=None, description="instead of the card's own table: idx files, or folders"
    )
    counts: Counts
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_what_it_is(self) -> Self:
        if "mirror" not in self.run_as or self.run_as == self.card:
            raise ValueError(
                f"run_as: must say that it is a mirror, e.g. '{self.card} (mirror)', not "
                f"'{self.run_as}'"
            )
        if self.splits is not None and not self.resplit:
            raise ValueError("resplit: say what is not the official split, since `splits` is given")
        return self

    @property
    def shortfall(self) -> str:
        """All that makes it other than the hub's set, in one line."""
        parts = [f"{split}: {text}" for split, text in self.partial.items()]
        return "; ".join(filter(None, ["a local mirror", *parts, self.lossy, self.resplit]))


class Manifest(Strict):
    """What a mirror holds."""

    schema_version: Literal[1] = Field(alias="schema")
    title: str
    root: str = Field(
        default=".",
        description="the mirror's folder, from the manifest's own; may hold $VARIABLE",
    )
    sets: tuple[MirroredSet, ...] = Field(min_length=1, alias="set")


def mirrored(card: Card) -> Card | None:
    """The card as the mirror in use serves it; None if no mirror is in use or it lacks the set.

    Raises:
        DataError: FRUGALBENCH_DATA names no mirror.
        InvalidFileError: the manifest is wrong.
    """
    path = manifest_in_use()
    if path is None or not isinstance(card.source, HubSource):
        return None
    manifest = _read(path, path.stat().st_mtime_ns)
    for entry in manifest.sets:
        if entry.card == card.name:
            return _as_mirrored(card, entry, path, mirror_root(manifest, path))
    return None


def manifest_in_use() -> Path | None:
    """The manifest that FRUGALBENCH_DATA leads to; None if it is not set.

    Raises:
        DataError: it leads to none.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return None
    path = Path(chosen).expanduser()
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise DataError(
                f"{path} holds no {MANIFEST}, so nobody says what of it is partial or altered; write "
                f"one (docs/adding.md), or let {VARIABLE} name a manifest that lies elsewhere"
            )
        return path / MANIFEST
    if not path.is_file():
        raise DataError(f"{VARIABLE}: there is no folder or manifest {path}")
    return path


def read_manifest(path: Path) -> Manifest:
    """Reads and validates a manifest.

    Raises:
        InvalidFileError: not TOML, or wrong; names the file and each wrong key.
    """
    from benchmarks.catalog import DATASETS

    try:
        manifest = Manifest.model_validate(read_toml(path))
    except ValidationError as error:
        raise InvalidFileError(f"{shown(path)}: {explain(error, 'manifest')}") from error
    for index, entry in enumerate(manifest.sets):
        where = f"{shown(path)}: set.{index}.card"
        if entry.card not in DATASETS:
            raise InvalidFileError(f"{where}: {suggest(entry.card, DATASETS.names(), kind='card')}")
        if not isinstance(DATASETS.get(entry.card).source, HubSource):
            raise InvalidFileError(f"{where}: '{entry.card}' is no hub set, so no mirror serves it")
        if entry.card in [other.card for other in manifest.sets[:index]]:
            raise InvalidFileError(f"{where}: '{entry.card}' is there twice")
    return manifest


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> Manifest:
    del changed  # only there so that a changed file is read again
    return read_manifest(path)


def mirror_root(manifest: Manifest, path: Path) -> Path:
    """The folder of the mirror that the manifest at `path` describes.

    Raises:
        DataError: it is not there, or hangs on an environment variable that is not set.
    """
    root = os.path.expandvars(manifest.root)
    if "$" in root:
        raise DataError(
            f"{shown(path)}: root: '{manifest.root}' names an environment variable that is not set"
        )
    folder = (path.parent / Path(root).expanduser()).resolve()
    if not folder.is_dir():
        raise DataError(f"{shown(path)}: root: there is no folder {folder}")
    return folder


def _as_mirrored(card: Card, entry: MirroredSet, path: Path, root: Path) -> Card:
    assert isinstance(card.source, HubSource)  # noqa: S101 - the caller has looked
    source = ParquetSource(
        kind="parquet",
        origin="mirror",
        repo=card.source.repo,
        run_as=entry.run_as,
        folder=root / entry.folder,
        parts=tuple(ParquetPart(name=name, files=files) for name, files in entry.files.items()),
    )
    changes = {
        "source": source,
        "splits": entry.splits or card.splits,
        "images": entry.images or card.images,
        "counts": entry.counts,
        "partial": entry.shortfall,
        "notes": (*card.notes, *entry.notes),
    }
    try:
        return Card.model_validate(
            card.model_dump(by_alias=True) | changes,
            context={"folder": card.splits_file.parent.parent},
        )
    except ValidationError as error:
        raise InvalidFileError(
            f"{shown(path)}: set '{entry.card}': {explain(error, 'set')}"
        ) from error
