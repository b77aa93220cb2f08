"""Texts as token ids at full length, built once from the package and kept in the cache."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.data.card import Card
from benchmarks.data.identity import SEP, encoding_key
from benchmarks.data.readers import Rows, read_rows
from benchmarks.data.splits import SplitName, rows_of_splits
from benchmarks.data.vocabulary import encode, pretrained_vocabulary, token_id, train_vocabulary
from benchmarks.paths import cache_dir
from benchmarks.running.files import storage_errors, write_atomically

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_AT_A_TIME = 10_000


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
        sep: id of [SEP].
        cls: id of [CLS]; -1 if inputs neither begin with it nor end with [SEP].
    """

    row_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    n_empty: int
    vocab_size: int
    sep: int = SEP
    cls: int = -1


class EncodedCache:
    """The encoded splits of one card at one training fraction.

    All splits are written at once, a file each; a split's file is opened only when it is asked
    for. A file that is missing or damaged is made again from the package.
    """

    def __init__(
        self, card: Card, train_fraction: float, package: Path, vocabulary: str | None = None
    ) -> None:
        self._card = card
        self._fraction = train_fraction
        self._package = package
        self._vocabulary = vocabulary
        self._folder = cache_dir() / "encoded" / encoding_key(card, train_fraction, vocabulary)

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
                    built = _build(self._card, self._fraction, self._package, self._vocabulary)
                    for name, texts in built.items():
                        write_atomically(self._folder / f"{name}.npz", _dump(texts))
                    found = built[split]
        return found


def _build(
    card: Card, train_fraction: float, package: Path, vocabulary: str | None
) -> dict[SplitName, FullTexts]:
    rows = read_rows(card, package)
    chosen = rows_of_splits(card, rows, train_fraction)
    tokenizer = (
        train_vocabulary(text for row in chosen["train"] for text in rows.texts[row])
        if vocabulary is None
        else pretrained_vocabulary(vocabulary)
    )
    sep = token_id(tokenizer, "[SEP]")
    cls = -1 if vocabulary is None else token_id(tokenizer, "[CLS]")

    return {
        name: replace(_encode_rows(tokenizer, rows, row_ids), sep=sep, cls=cls)
        for name, row_ids in chosen.items()
    }


def _encode_rows(tokenizer: Tokenizer, rows: Rows, row_ids: list[int]) -> FullTexts:
    """Some rows at a time: as Python's integers, a large set would not fit into memory."""
    tokens, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
    n_empty = 0
    for start in range(0, len(row_ids), _AT_A_TIME):
        texts = [rows.texts[row] for row in row_ids[start : start + _AT_A_TIME]]
        ids, empty = encode(tokenizer, [text for parts in texts for text in parts])
        n_empty += int(np.reshape(empty, (len(texts), -1)).any(axis=1).sum())
        lengths.append(np.fromiter(map(len, ids), np.int64, len(ids)))
        tokens.append(np.fromiter((token for text in ids for token in text), np.int32))
    return FullTexts(
        row_ids=np.asarray(row_ids, np.int64),
        labels=np.asarray([rows.labels[row] for row in row_ids], np.int64),
        tokens=np.concatenate(tokens),
        offsets=np.cumsum(np.concatenate(lengths), dtype=np.int64),
        n_empty=n_empty,
        vocab_size=tokenizer.get_vocab_size(),
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
                sep=int(stored["sep"]),
                cls=int(stored["cls"]),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
