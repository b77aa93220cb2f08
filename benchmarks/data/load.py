"""A data set ready for training and measuring: splits of token ids, cut to a length."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data.card import Card, GeneratedSource, find_card
from benchmarks.data.encoded import EncodedCache, FullTexts
from benchmarks.data.fetch import package_path
from benchmarks.data.identity import ENCODING, SEP, card_hash
from benchmarks.errors import DataError


@dataclass(frozen=True)
class EncodedSplit:
    """Inputs of one split, in row-id order.

    Attributes:
        name: "train", "validation", "test" or "generated".
        row_ids: (n,) int64, position in the whole data set; stable between machines.
        tokens: (total tokens,) int32, the inputs one after another, without padding.
        segments: like `tokens`, int8, 0 for a pair's first text and its [SEP], 1 for its second;
            None for single texts.
        offsets: (n + 1,) int64, where each input starts in `tokens`.
        labels: (n,) int64.
        n_truncated: inputs that were longer than `max_length`.
        n_empty: inputs with a text without any known token, which became one [UNK].
    """

    name: str
    row_ids: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    segments: npt.NDArray[np.int8] | None
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    n_truncated: int = 0
    n_empty: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(n,) tokens of each input."""
        return np.diff(self.offsets)

    def take(self, indices: npt.ArrayLike) -> EncodedSplit:
        """The inputs at these positions, in this order.

        `n_truncated` and `n_empty` stay those of the whole split.
        """
        chosen = np.asarray(indices, np.int64)
        where, offsets = _gather(self.offsets[chosen], self.lengths[chosen])
        return replace(
            self,
            row_ids=self.row_ids[chosen],
            tokens=self.tokens[where],
            segments=None if self.segments is None else self.segments[where],
            offsets=offsets,
            labels=self.labels[chosen],
        )


@dataclass
class TextData:
    """One data set at one length and training fraction.

    Attributes:
        card: where it comes from.
        classes: in label order.
        vocab_size: token ids, special ones included.
        n_segments: 1 for single texts, 2 for pairs.
        max_length: most tokens of an input.
        train: training split (a nested subset where the fraction is below 1).
        validation: validation split, always whole.
        hash: what `data_hash` says.
        partial: whether the set lacks a part of its original.
        note: what is partial, a stand-in or a subset; for records.
    """

    card: Card
    classes: tuple[str, ...]
    vocab_size: int
    n_segments: int
    max_length: int
    train: EncodedSplit
    validation: EncodedSplit
    hash: str
    partial: bool
    note: str
    _test: EncodedSplit | EncodedCache = field(repr=False)

    def test(self) -> EncodedSplit:
        """The test split. Nothing of it is read before the first call: ask once, at the end."""
        if isinstance(self._test, EncodedCache):
            self._test = _cut(self._test.read("test"), "test", self.card, self.max_length)
        return self._test


def load_text(name: str, *, max_length: int, train_fraction: float = 1.0) -> TextData:
    """Loads a data set by the name of its card.

    Args:
        name: of the card.
        max_length: longer inputs are cut at the end, pairs on their longer text first.
        train_fraction: share in (0, 1] of each label's training rows; the vocabulary is learned
            from these rows only.

    Raises:
        UsageError: no such card.
        DataError: not fetched, altered, not what its card says, a class without training
            rows, or arguments out of range.
    """
    return load_card_text(find_card(name), max_length=max_length, train_fraction=train_fraction)


def load_card_text(card: Card, *, max_length: int, train_fraction: float = 1.0) -> TextData:
    """`load_text` for a card in hand."""
    shortest = 3 if card.task == "pair" else 1
    if max_length < shortest:
        raise DataError(
            f"data set '{card.name}': max_length must be at least {shortest}, not {max_length}"
        )
    if not 0 < train_fraction <= 1:
        raise DataError(f"train_fraction must lie in (0, 1], not {train_fraction}")
    notes = [card.partial, card.role]
    if train_fraction < 1:
        notes.append(f"{train_fraction:g} of the training rows")
    common: dict[str, Any] = {
        "card": card,
        "classes": card.classes,
        "n_segments": card.n_parts,
        "max_length": max_length,
        "hash": card_hash(card, max_length=max_length, train_fraction=train_fraction),
        "partial": bool(card.partial),
        "note": "; ".join(note for note in notes if note),
    }
    if isinstance(card.source, GeneratedSource):
        everything = _random_tokens(card.name, card.source, len(card.classes), max_length)
        return TextData(
            vocab_size=card.source.vocabulary,
            train=replace(everything.take([]), name="train"),
            validation=replace(everything.take([]), name="validation"),
            _test=everything,
            **common,
        )
    cache = EncodedCache(card, train_fraction, package_path(card))
    train = cache.read("train")
    return TextData(
        vocab_size=train.vocab_size,
        train=_cut(train, "train", card, max_length),
        validation=_cut(cache.read("validation"), "validation", card, max_length),
        _test=cache,
        **common,
    )


def _cut(full: FullTexts, name: str, card: Card, max_length: int) -> EncodedSplit:
    """Truncates, and joins pairs as `a [SEP] b`."""
    lengths = np.diff(full.offsets)
    starts = full.offsets[:-1]
    if card.task == "single":
        whole = lengths
        kept = np.minimum(lengths, max_length)
        where, offsets = _gather(starts, kept)
        tokens, segments = full.tokens[where], None
    else:
        first, second = lengths[0::2], lengths[1::2]
        whole = first + 1 + second
        room = max_length - 1
        kept_second = np.minimum(second, np.maximum(room - first, room // 2))
        kept_first = np.minimum(first, room - kept_second)
        separator = np.ones_like(first)
        pieces = np.stack([kept_first, separator, kept_second], axis=1).ravel()
        # the separator is one more token at the end of the flat array
        begins = np.stack(
            [starts[0::2], separator * len(full.tokens), starts[1::2]], axis=1
        ).ravel()
        where, ends = _gather(begins, pieces)
        tokens = np.append(full.tokens, np.int32(SEP))[where]
        segments = np.repeat(np.tile(np.array([0, 0, 1], np.int8), len(first)), pieces)
        offsets = ends[0::3]
    return EncodedSplit(
        name=name,
        row_ids=full.row_ids,
        tokens=tokens,
        segments=segments,
        offsets=offsets,
        labels=full.labels,
        n_truncated=int((whole > max_length).sum()),
        n_empty=full.n_empty,
    )


def _gather(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions of the pieces [start, start + length) laid end to end, and where each begins."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    where = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1], dtype=np.int64)
    return where, offsets


def _random_tokens(
    name: str, source: GeneratedSource, n_classes: int, max_length: int
) -> EncodedSplit:
    """Every input is exactly `max_length` ordinary tokens; the same bytes on every machine."""
    n = source.inputs
    # a hash stream, not a random generator: its values can never change with a library
    stream = hashlib.shake_256(name.encode()).digest(4 * n * max_length)
    special = len(ENCODING["special"])
    tokens = np.frombuffer(stream, "<u4") % (source.vocabulary - special) + special
    return EncodedSplit(
        name="generated",
        row_ids=np.arange(n, dtype=np.int64),
        tokens=tokens.astype(np.int32),
        segments=None,
        offsets=np.arange(n + 1, dtype=np.int64) * max_length,
        labels=np.arange(n, dtype=np.int64) % n_classes,
    )
