"""All rows of an image set: labels, and what tells equal images, without holding their pixels."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.canonical import digest
from benchmarks.data.card import Card
from benchmarks.data.identity import PIXELS
from benchmarks.data.image_files import Item, parts_of, read_items
from benchmarks.data.pixels import CorruptImageError, Pixels, decode
from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import storage_errors, write_atomically

_MARK = 16


@dataclass(frozen=True)
class ImageRows:
    """All images of a set, part after part in the card's order; the index is the row id.

    Attributes:
        labels: index into the card's classes.
        parts: for each part, its row ids.
        marks: (n, 16) uint8, hash of an image's shape and pixels, in its own size.
        kept: for each image in the files, whether it is a row; corrupt ones that are skipped are none.
        n_converted: images that had another mode than the set.
    """

    labels: list[int]
    parts: dict[str, range]
    marks: npt.NDArray[np.uint8]
    kept: npt.NDArray[np.bool_]
    n_converted: int

    @property
    def n_unlabelled(self) -> int:
        """Rows left out since they have no label: in an image set that is an error."""
        return 0

    @property
    def n_corrupt(self) -> int:
        """Images left out since they cannot be decoded."""
        return int((~self.kept).sum())

    def same(self, row: int) -> bytes:
        """What is equal for rows with the same image."""
        return bytes(self.marks[row])


def read_image_rows(card: Card, path: Path) -> ImageRows:
    """The rows of an image set, from the cache if they were read before.

    Args:
        card: of a packaged set, or of files in hand.
        path: what `data_path` gives.

    Raises:
        DataError: a file or an image is not what the card says; the text names it.
    """
    from filelock import FileLock

    file = cache_dir() / "images" / f"rows-{_key(card)}.npz"
    found = _load(file, card)
    if found is None:
        with storage_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_suffix(".lock")):
                found = _load(file, card)
                if found is None:
                    found = _read(card, path)
                    write_atomically(file, _dump(found))
    return found


def decoded(
    card: Card, path: Path, rows: ImageRows, wanted: set[int]
) -> Iterator[tuple[int, Pixels]]:
    """Row id and pixels of the wanted rows, in order; nothing else is decoded.

    Raises:
        DataError: as `read_image_rows`.
    """
    assert card.images is not None  # noqa: S101 - rows were read by this card
    row = 0
    for item, kept in zip(_items(card, path), rows.kept, strict=True):
        if kept and row in wanted:
            yield row, decode(item, card.images)[0]
        row += bool(kept)


def _items(card: Card, path: Path) -> Iterator[Item]:
    for part in parts_of(card):
        yield from read_items(card, part, path)


def _read(card: Card, path: Path) -> ImageRows:
    assert card.images is not None  # noqa: S101 - the caller has looked
    labels: list[int] = []
    marks: list[bytes] = []
    kept: list[bool] = []
    parts: dict[str, range] = {}
    n_converted = 0
    for part in parts_of(card):
        start = len(labels)
        for item in read_items(card, part, path):
            try:
                pixels, converted = decode(item, card.images)
            except CorruptImageError as error:
                if card.images.on_corrupt == "skip":
                    kept.append(False)
                    continue
                raise DataError(
                    f"data set '{card.run_name}': {error}; `images.on_corrupt = \"skip\"` in the card "
                    "would leave such images out and count them"
                ) from error
            kept.append(True)
            labels.append(item.label)
            marks.append(_mark(pixels))
            n_converted += converted
        parts[part.name] = range(start, len(labels))
    return ImageRows(
        labels=labels,
        parts=parts,
        marks=np.frombuffer(b"".join(marks), np.uint8).reshape(-1, _MARK),
        kept=np.array(kept, np.bool_),
        n_converted=n_converted,
    )


def _mark(pixels: Pixels) -> bytes:
    hashed = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=_MARK)
    hashed.update(np.ascontiguousarray(pixels).data)
    return hashed.digest()


def _key(card: Card) -> str:
    declared = card.model_dump(
        include={"classes", "source", "images"}, exclude={"source": {"size_mb", "folder"}}
    )
    return digest([declared, PIXELS], length=32)


def _dump(rows: ImageRows) -> bytes:
    content = io.BytesIO()
    np.savez(
        content,
        labels=np.array(rows.labels, np.int64),
        ends=np.array([ids.stop for ids in rows.parts.values()], np.int64),
        marks=rows.marks,
        kept=rows.kept,
        n_converted=rows.n_converted,
    )
    return content.getvalue()


def _load(path: Path, card: Card) -> ImageRows | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            ends = [0, *stored["ends"].tolist()]
            names = [part.name for part in parts_of(card)]
            return ImageRows(
                labels=stored["labels"].tolist(),
                parts={
                    name: range(start, stop)
                    for name, start, stop in zip(names, ends[:-1], ends[1:], strict=True)
                },
                marks=stored["marks"],
                kept=stored["kept"],
                n_converted=int(stored["n_converted"]),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
