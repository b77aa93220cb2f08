"""Texts as token ids at full length, built once from the package and kept in the cache."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.data.card import Card
from benchmarks.data.identity import encoding_key
from benchmarks.data.readers import Rows, read_rows
from benchmarks.data.splits import SplitName, nested_subset, read_splits
from benchmarks.data.vocabulary import encode, train_vocabulary
from benchmarks.errors import DataError
from benchmarks.paths import cache_dir
from benchmarks.running.files import storage_errors, write_atomically

SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class FullTexts:
    """One split before truncation.

    Attributes:
        row_ids: (n,) int64.
        labels: (n,) int64.
        tokens: int32, all texts one after another; a pair's two texts are neighbours.
        offsets: (n * texts per row + 1,) int64, where each text starts in `tokens`.
        n_empty: rows with a text that holds no known token.
        vocab_size: token ids, special ones included.
    """

    row_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    n_empty: int
    vocab_size: int


class EncodedCache:
    """The encoded splits of one card at one training fraction.

    All splits are written at once, a file each; a split's file is opened only when it is asked
    for. A file that is missing or damaged is made again from the package.
    """

    def __init__(self, card: Card, train_fraction: float, package: Path) -> None:
        self._card = card
        self._fraction = train_fraction
        self._package = package
        self._folder = cache_dir() / "encoded" / encoding_key(card, train_fraction)

    def read(self, split: SplitName) -> FullTexts:
        """The split, from the cache if it is there.

        Raises:
            DataError: the package's content is not what the card says.
        """
        found = _load(self._folder / f"{split}.npz")
        if found is not None:
            return found
        from filelock import FileLock

        with storage_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / ".lock"):
                found = _load(self._folder / f"{split}.npz")
                if found is None:
                    built = _build(self._card, self._fraction, self._package)
                    for name, texts in built.items():
                        write_atomically(self._folder / f"{name}.npz", _dump(texts))
                    found = built[split]
        return found


def _build(card: Card, train_fraction: float, package: Path) -> dict[SplitName, FullTexts]:
    rows = read_rows(card, package)
    splits = read_splits(card)
    last = max(max(getattr(splits, name), default=-1) for name in SPLITS)
    if last >= len(rows.labels):
        raise DataError(
            f"data set '{card.name}': its split file names row {last}, but there are only "
            f"{len(rows.labels)} rows"
        )
    present = {rows.labels[row] for row in splits.train}
    absent = [name for label, name in enumerate(card.classes) if label not in present]
    if absent:
        raise DataError(
            f"data set '{card.name}': no training row is of class {', '.join(map(repr, absent))}, "
            "so nothing can learn it"
        )
    train = nested_subset(
        splits.train, [rows.labels[row] for row in splits.train], train_fraction, card.name
    )
    tokenizer = train_vocabulary(text for row in train for text in rows.texts[row])
    vocab_size = tokenizer.get_vocab_size()

    def full(row_ids: list[int]) -> FullTexts:
        ids, empty = encode(tokenizer, [text for row in row_ids for text in rows.texts[row]])
        n_rows_empty = int(np.reshape(empty, (-1, card.n_parts)).any(axis=1).sum())
        return _flatten(row_ids, rows, ids, n_rows_empty, vocab_size)

    return {
        "train": full(train),
        "validation": full(list(splits.validation)),
        "test": full(list(splits.test)),
    }


def _flatten(
    row_ids: list[int], rows: Rows, ids: list[list[int]], n_empty: int, vocab_size: int
) -> FullTexts:
    lengths = [len(text) for text in ids]
    return FullTexts(
        row_ids=np.asarray(row_ids, np.int64),
        labels=np.asarray([rows.labels[row] for row in row_ids], np.int64),
        tokens=np.asarray([token for text in ids for token in text], np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        n_empty=n_empty,
        vocab_size=vocab_size,
    )


def _dump(texts: FullTexts) -> bytes:
    content = io.BytesIO()
    np.savez(content, **vars(texts))
    return content.getvalue()


def _load(path: Path) -> FullTexts | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return FullTexts(
                row_ids=stored["row_ids"],
                labels=stored["labels"],
                tokens=stored["tokens"],
                offsets=stored["offsets"],
                n_empty=int(stored["n_empty"]),
                vocab_size=int(stored["vocab_size"]),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
