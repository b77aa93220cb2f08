"""Images as pixels of one size, built once from the files and kept in the cache.

A split is two files: `SPLIT.pixels`, an array in NumPy's own form that is mapped into memory and so is
read only where it is looked at, and `SPLIT.npz` with all the rest, which is written last.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from benchmarks.canonical import digest
from benchmarks.data.card import Card
from benchmarks.data.identity import encoding_key
from benchmarks.data.image_rows import decoded, read_image_rows
from benchmarks.data.images import ImageSplit
from benchmarks.data.pixels import square
from benchmarks.data.splits import SPLITS, SplitName, rows_of_splits
from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import storage_errors, whole_file, write_atomically

CHECKED = 2**30
"""Bytes of pixels whose checksum is looked at whenever they are opened; more would take too long."""


@dataclass(frozen=True)
class SquareImages:
    """One split at one size.

    Attributes:
        split: its images.
        n_corrupt: images of the whole set that were left out.
        n_converted: images of the whole set that had another mode.
    """

    split: ImageSplit
    n_corrupt: int
    n_converted: int


class ImageCache:
    """The splits of one image set at one size and training fraction.

    All splits are written at once; a split's files are opened only when it is asked for. What is
    missing or damaged is made again from the data set's own files.
    """

    def __init__(self, card: Card, side: int, train_fraction: float, path: Path) -> None:
        self._card = card
        self._side = side
        self._fraction = train_fraction
        self._path = path
        key = digest([encoding_key(card, train_fraction), side], length=32)
        self._folder = cache_dir() / "images" / key

    def cached(self, name: SplitName) -> SquareImages | None:
        """The split if it is in the cache, whole; else None, and nothing is made."""
        return self._load(name)

    def read(self, name: SplitName) -> SquareImages:
        """The split, from the cache if it is there.

        Raises:
            DataError: the files' content is not what the card says.
        """
        found = self._load(name)
        if found is None:
            from filelock import FileLock

            with storage_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                with FileLock(self._folder / ".lock"):
                    found = self._load(name)
                    if found is None:
                        self._build()
                        found = self._load(name)
        if found is None:
            raise DataError(f"{self._folder}: what was just written there cannot be read back")
        return found

    def _build(self) -> None:
        card = self._card
        rows = read_image_rows(card, self._path)
        chosen = rows_of_splits(card, rows, self._fraction)
        split_of = {row: name for name in SPLITS for row in chosen[name]}
        sums = np.zeros((2, card.channels), np.int64)
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    _array(
                        self._folder / f"{name}.pixels",
                        (len(chosen[name]), card.channels, self._side, self._side),
                    )
                )
                for name in SPLITS
            }
            for row, pixels in decoded(card, self._path, rows, set(split_of)):
                image = square(pixels, self._side)
                files[split_of[row]].write(image.tobytes())
                if split_of[row] == "train":
                    values = image.astype(np.int64)
                    sums += values.sum(axis=(1, 2)), (values**2).sum(axis=(1, 2))
        mean, std = _moments(sums, len(chosen["train"]) * self._side**2, card)
        for name in SPLITS:
            content = io.BytesIO()
            np.savez(
                content,
                row_ids=np.array(chosen[name], np.int64),
                labels=np.array([rows.labels[row] for row in chosen[name]], np.int64),
                mean=mean,
                std=std,
                n_corrupt=rows.n_corrupt,
                n_converted=rows.n_converted,
                checksum=_checksum(self._folder / f"{name}.pixels"),
            )
            write_atomically(self._folder / f"{name}.npz", content.getvalue())

    def _load(self, name: SplitName) -> SquareImages | None:
        path = self._folder / f"{name}.pixels"
        try:
            with (self._folder / f"{name}.npz").open("rb") as file:
                stored = dict(np.load(file, allow_pickle=False))
            pixels = _mapped(path)
            n = len(stored["labels"])
            if pixels.shape != (n, self._card.channels, self._side, self._side):
                return None
            if pixels.nbytes <= CHECKED and _checksum(path) != int(stored["checksum"]):
                return None
            split = ImageSplit(
                name=name,
                row_ids=stored["row_ids"],
                pixels=pixels,
                labels=stored["labels"],
                mean=stored["mean"],
                std=stored["std"],
            )
            return SquareImages(split, int(stored["n_corrupt"]), int(stored["n_converted"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            return None


def _moments(
    sums: npt.NDArray[np.int64], n: int, card: Card
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Mean and deviation of each channel over 255, from its sum and its sum of squares."""
    mean = sums[0] / n
    std = np.sqrt(np.maximum(sums[1] / n - mean**2, 0))
    if not (std > 0).all():
        raise DataError(
            f"data set '{card.name}': all training pixels of a channel are alike, so there is nothing "
            "to see"
        )
    return (mean / 255).astype(np.float32), (std / 255).astype(np.float32)


@contextlib.contextmanager
def _array(path: Path, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """A file for bytes of that shape, whole or not there; an array's head stands in it already."""
    with whole_file(path) as file:
        head = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        yield file


def _mapped(path: Path) -> npt.NDArray[np.uint8]:
    pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    if pixels.dtype != np.uint8:
        raise ValueError("no pixels")
    return np.asarray(pixels)


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            found = zlib.crc32(block, found)
    return found
