"""From the files of an image set to its images, one after another, still as they lie there."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.data.archives import read_member
from benchmarks.data.card import Card
from benchmarks.data.image_reader import ImageReader
from benchmarks.data.parquet import read_images
from benchmarks.data.sources import PackageSource, ParquetPart, ParquetSource, Part
from benchmarks.errors import DataError

IMAGE_FILES = (".jpeg", ".jpg", ".png")
"""What counts as an image in a folder; capital letters make no difference."""

_SHOWN = 5


@dataclass(frozen=True)
class Item:
    """One image as it lies in its file.

    Attributes:
        label: index into the card's classes.
        content: an image file, its path, or (size, size) grey values.
        where: file and row, for messages.
    """

    label: int
    content: bytes | Path | npt.NDArray[np.uint8]
    where: str


def read_items(card: Card, part: Part | ParquetPart, path: Path) -> Iterator[Item]:
    """The images of one part, in order.

    Args:
        card: of an image set.
        part: of its source.
        path: what `data_path` gives.

    Raises:
        DataError: a file is missing, cut short, or not what the card says; a label is out of
            range; or the number of images is not the card's.
    """
    assert card.images is not None  # noqa: S101 - the caller has looked
    if isinstance(part, Part):
        where = f"{path.name}:{part.path}"
        yield from _counted(_csv(card, card.images, path, part), part.rows, where, card)
        return
    if card.images.format == "idx":
        yield from _idx(card, card.images, part, path)
        return
    for file in part.files:
        found = (
            _folders(card, path / file.path)
            if card.images.format == "folders"
            else _parquet(card, card.images, path / file.path)
        )
        yield from _counted(found, file.rows, file.path, card)


def parts_of(card: Card) -> Sequence[Part | ParquetPart]:
    """The parts of a card's source.

    Raises:
        DataError: it has none to read.
    """
    if card.images is None or not isinstance(card.source, PackageSource | ParquetSource):
        raise DataError(f"data set '{card.name}' has no images to read ({card.source_text})")
    return card.source.parts


def listing(folder: Path) -> tuple[str, int]:
    """SHA-256 of the lines "SIZE CLASS/NAME" of a folder's image files in order, and how many.

    Sizes and names are looked at, not contents: a large set would take hours.

    Raises:
        DataError: it is no folder that can be read.
    """
    lines = hashlib.sha256()
    n = 0
    for file in _image_files(folder):
        try:
            lines.update(f"{file.stat().st_size} {file.parent.name}/{file.name}\n".encode())
        except OSError as error:
            raise DataError(f"{file}: {error.strerror or error}") from error
        except UnicodeEncodeError as error:
            raise DataError(f"{str(file)!a}: its name is no UTF-8 text; rename it") from error
        n += 1
    return lines.hexdigest(), n


def _counted(items: Iterator[Item], rows: int, where: str, card: Card) -> Iterator[Item]:
    n = 0
    for item in items:
        yield item
        n += 1
    if n != rows:
        raise DataError(f"{where} has {n} images, '{card.run_name}' must have {rows}")


def _csv(card: Card, reader: ImageReader, package: Path, part: Part) -> Iterator[Item]:
    side, at = reader.size, reader.label
    assert isinstance(side, int) and isinstance(at, int)  # noqa: S101, PT018 - the card has made sure
    where = f"{package.name}:{part.path}"
    content = read_member(package, part.path)
    if part.path.endswith(".gz"):
        content = _unzipped(content, where)
    try:
        table = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    if table.shape[1] != side * side + 1:
        raise DataError(
            f"{where}: {table.shape[1]} columns, '{card.name}' expects a label and {side} x {side} "
            "pixels"
        )
    labels, values = table[:, at], np.delete(table, at, axis=1)
    if not ((values >= 0) & (values <= reader.white) & (values == np.rint(values))).all():
        raise DataError(f"{where}: a pixel is no whole number from 0 to {reader.white}")
    pixels = np.rint(values * (255 / reader.white)).astype(np.uint8).reshape(-1, side, side)
    for row, label in enumerate(labels):
        at_row = f"{where}, line {row + 1}"
        yield Item(_in_range(card, label, at_row), pixels[row], at_row)


def _parquet(card: Card, reader: ImageReader, path: Path) -> Iterator[Item]:
    column, image = str(reader.label), str(reader.image)
    for row, (label, content) in enumerate(
        read_images(path, column, image, card.classes, card.name)
    ):
        where = f"{path.name}, row {row}"
        yield Item(_in_range(card, label, where), content, where)


def _idx(card: Card, reader: ImageReader, part: ParquetPart, folder: Path) -> Iterator[Item]:
    if len(part.files) != 2:
        raise DataError(
            f"data set '{card.run_name}': part '{part.name}' needs two idx files, images and labels, "
            f"not {len(part.files)}"
        )
    images, labels = part.files
    pixels = _idx_array(folder / images.path, 3)
    numbers = _idx_array(folder / labels.path, 1)
    for file, array in ((images, pixels), (labels, numbers)):
        if len(array) != file.rows:
            raise DataError(
                f"{file.path} has {len(array)} rows, '{card.run_name}' must have {file.rows}"
            )
    if len(pixels) != len(numbers):
        raise DataError(f"{images.path} has {len(pixels)} images, {labels.path} {len(numbers)}")
    if pixels.shape[1:] != (reader.size, reader.size):
        raise DataError(
            f"{images.path}: images of {pixels.shape[2]} x {pixels.shape[1]} pixels, '{card.name}' "
            f"has {reader.size} x {reader.size}"
        )
    for row, label in enumerate(numbers):
        where = f"{labels.path}, row {row}"
        yield Item(_in_range(card, label, where), pixels[row], f"{images.path}, row {row}")


def _idx_array(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """An idx file of bytes: two zeros, type 8, the number of dimensions, then each, then the values."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = _unzipped(content, path.name)
    start = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) < start:
        raise DataError(
            f"{path.name} is no idx file of bytes in {dimensions} dimensions: it begins with "
            f"{content[:4].hex(' ') or 'nothing'}, not {bytes([0, 0, 8, dimensions]).hex(' ')}"
        )
    shape = [int(n) for n in np.frombuffer(content, ">u4", dimensions, 4)]
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise DataError(
            f"{path.name} is cut short or too long: {len(content):,} bytes, its head says {expected:,}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _folders(card: Card, folder: Path) -> Iterator[Item]:
    there = {entry.name for entry in _entries(folder) if entry.is_dir()}
    missing = [name for name in card.classes if name not in there]
    extra = sorted(there - set(card.classes))
    if missing or extra:
        wrong = [f"missing: {_some(missing)}"] * bool(missing) + [f"extra: {_some(extra)}"] * bool(
            extra
        )
        raise DataError(
            f"{folder}: must hold one folder a class of '{card.name}' ({len(card.classes)} of them); "
            f"{'; '.join(wrong)}"
        )
    label = {name: index for index, name in enumerate(card.classes)}
    for file in _image_files(folder):
        yield Item(label[file.parent.name], file, f"{folder.name}/{file.parent.name}/{file.name}")


def _image_files(folder: Path) -> Iterator[Path]:
    """Image files of each folder in a folder, both in the order of their names."""
    for group in sorted(entry.name for entry in _entries(folder) if entry.is_dir()):
        for name in sorted(entry.name for entry in _entries(folder / group)):
            if name.lower().endswith(IMAGE_FILES):
                yield folder / group / name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}") from error


def _in_range(card: Card, label: float | None, where: str) -> int:
    """The label as a class number."""
    if label is not None and 0 <= label < len(card.classes) and label == int(label):
        return int(label)
    raise DataError(
        f"{where}: label {label} is out of range; '{card.name}' has 0 to {len(card.classes) - 1}"
    )


def _unzipped(content: bytes, where: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} is damaged, or cut short ({error})") from error


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
