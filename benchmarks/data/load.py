"""A data set ready for training and measuring: splits of token ids, cut to a length."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data.card import Card, find_card
from benchmarks.data.diagnostics.make import make
from benchmarks.data.encoded import EncodedCache, FullTexts
from benchmarks.data.fetch import data_path
from benchmarks.data.generated import GeneratedTask
from benchmarks.data.identity import ENCODING, card_hash
from benchmarks.data.image_data import ImageData, load_card_images
from benchmarks.data.sources import GeneratedSource
from benchmarks.data.splits import SPLITS, nested_subset
from benchmarks.data.weights import find_weights
from benchmarks.errors import DataError


@dataclass(frozen=True)
class EncodedSplit:
    """Inputs of one split, in row-id order.

    Attributes:
        name: "train", "validation", "test" or "generated".
        row_ids: (n,) int64, position in the whole data set; stable between machines.
        tokens: (total tokens,) int32, the inputs one after another, without padding.
        segments: like `tokens`, int8, 0 for a pair's first text and its [SEP], 1 for its second
            (in a pretrained vocabulary: [CLS] 0, the last [SEP] 1);
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


AnyData = TextData | ImageData


def load_data(
    name: str, *, max_length: int, train_fraction: float = 1.0, vocabulary: str | None = None
) -> AnyData:
    """Loads a data set of texts or images by the name of its card.

    Args:
        name: of the card.
        max_length: of texts, tokens kept of each; of images, their side in pixels.
        train_fraction: share in (0, 1] of each label's training rows.
        vocabulary: name of the pretrained weights whose vocabulary texts are read in; images have
            none, and it changes nothing for them.

    Raises:
        UsageError: no such card.
        DataError: as `load_text` and `load_card_images`.
    """
    card = find_card(name)
    if card.is_image:
        return load_card_images(card, image_size=max_length, train_fraction=train_fraction)
    return load_card_text(
        card, max_length=max_length, train_fraction=train_fraction, vocabulary=vocabulary
    )


def load_text(
    name: str, *, max_length: int, train_fraction: float = 1.0, vocabulary: str | None = None
) -> TextData:
    """Loads a data set by the name of its card.

    Args:
        name: of the card.
        max_length: longer inputs are cut at the end, pairs on their longer text first.
        train_fraction: share in (0, 1] of each label's training rows; the vocabulary is learned
            from these rows only.
        vocabulary: name of the pretrained weights whose vocabulary is used instead.

    Raises:
        UsageError: no such card.
        DataError: not fetched, altered, not what its card says, a class without training
            rows, or arguments out of range.
    """
    return load_card_text(
        find_card(name),
        max_length=max_length,
        train_fraction=train_fraction,
        vocabulary=vocabulary,
    )


def load_card_text(
    card: Card, *, max_length: int, train_fraction: float = 1.0, vocabulary: str | None = None
) -> TextData:
    """`load_text` for a card in hand."""
    if card.is_image:
        raise DataError(f"data set '{card.name}' holds images, not texts")
    # a text each, and around them [CLS] and [SEP]
    shortest = (3 if card.task == "pair" else 1) + (0 if vocabulary is None else 2)
    if max_length < shortest:
        raise DataError(
            f"data set '{card.name}': max_length must be at least {shortest}, not {max_length}"
        )
    if not 0 < train_fraction <= 1:
        raise DataError(f"train_fraction must lie in (0, 1], not {train_fraction}")
    notes = [card.partial, card.role]
    if train_fraction < 1:
        notes.append(f"{train_fraction:g} of the training rows")
    if vocabulary is not None:
        notes.append(f"in the vocabulary of {vocabulary}")
    common: dict[str, Any] = {
        "card": card,
        "classes": card.classes,
        "n_segments": card.n_parts,
        "max_length": max_length,
        "hash": card_hash(
            card, max_length=max_length, train_fraction=train_fraction, vocabulary=vocabulary
        ),
        "partial": bool(card.partial),
        "note": "; ".join(note for note in notes if note),
    }
    if isinstance(card.source, GeneratedSource):
        size = card.source.vocabulary
        if vocabulary is not None:
            size = find_weights(vocabulary).pieces.size
        assert size is not None  # noqa: S101 - the card has made sure
        everything = _random_tokens(card, card.source.inputs, size, max_length)
        return TextData(
            vocab_size=size,
            train=replace(everything.take([]), name="train"),
            validation=replace(everything.take([]), name="validation"),
            _test=everything,
            **common,
        )
    if isinstance(card.source, GeneratedTask):
        if vocabulary is not None:
            raise DataError(f"data set '{card.name}' has tokens of its own, not those of a text")
        if max_length < card.source.task.longest:
            raise DataError(
                f"data set '{card.name}': max_length must be at least {card.source.task.longest}, not "
                f"{max_length}: a cut input would have lost its answer"
            )
        rows = _task_splits(card.name, card.source, train_fraction)
        return TextData(
            vocab_size=card.source.task.vocab_size,
            train=rows["train"],
            validation=rows["validation"],
            _test=rows["test"],
            **common,
        )
    cache = EncodedCache(card, train_fraction, data_path(card), vocabulary)
    train = cache.read("train")
    return TextData(
        vocab_size=train.vocab_size,
        train=_cut(train, "train", card, max_length),
        validation=_cut(cache.read("validation"), "validation", card, max_length),
        _test=cache,
        **common,
    )


def _cut(full: FullTexts, name: str, card: Card, max_length: int) -> EncodedSplit:
    """Truncates, joins pairs as `a [SEP] b`, and where there is a [CLS] writes `[CLS] … [SEP]`."""
    lengths = np.diff(full.offsets)
    starts = full.offsets[:-1]
    # the marks are further tokens at the end of the flat array
    flat = np.append(full.tokens, np.array([full.sep, full.cls], np.int32))
    one = np.ones(len(full.labels), np.int64)
    sep, cls = one * len(full.tokens), one * (len(full.tokens) + 1)
    framed = full.cls >= 0
    room = max_length - 2 * framed
    if card.task == "single":
        whole = lengths
        pieces = [(starts, np.minimum(lengths, room))]
        of_text = [0]
    else:
        first, second = lengths[0::2], lengths[1::2]
        whole = first + 1 + second
        both = room - 1
        kept_second = np.minimum(second, np.maximum(both - first, both // 2))
        kept_first = np.minimum(first, both - kept_second)
        pieces = [(starts[0::2], kept_first), (sep, one), (starts[1::2], kept_second)]
        of_text = [0, 0, 1]
    if framed:
        pieces = [(cls, one), *pieces, (sep, one)]
        of_text = [0, *of_text, of_text[-1]]
    kept = np.stack([length for _, length in pieces], axis=1).ravel()
    where, ends = _gather(np.stack([begin for begin, _ in pieces], axis=1).ravel(), kept)
    segments = None
    if card.task == "pair":
        segments = np.repeat(np.tile(np.array(of_text, np.int8), len(one)), kept)
    return EncodedSplit(
        name=name,
        row_ids=full.row_ids,
        tokens=flat[where],
        segments=segments,
        offsets=ends[:: len(pieces)],
        labels=full.labels,
        n_truncated=int((whole > room).sum()),
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


def _task_splits(name: str, source: GeneratedTask, fraction: float) -> dict[str, EncodedSplit]:
    """A diagnostic's splits; rows are numbered through train, validation and test."""
    made = make(name, source)
    splits: dict[str, EncodedSplit] = {}
    start = 0
    for split in SPLITS:
        part = made[split]
        splits[split] = EncodedSplit(
            name=split,
            row_ids=np.arange(start, start + len(part.labels), dtype=np.int64),
            tokens=part.tokens,
            segments=None,
            offsets=part.offsets,
            labels=part.labels,
        )
        start += len(part.labels)
    if fraction < 1:
        train = splits["train"]
        kept = nested_subset(range(len(train)), train.labels.tolist(), fraction, name)
        splits["train"] = train.take(kept)
    return splits


def _random_tokens(card: Card, n: int, vocabulary: int, max_length: int) -> EncodedSplit:
    """Every input is exactly `max_length` ordinary tokens; the same bytes on every machine."""
    # a hash stream, not a random generator: its values can never change with a library
    stream = hashlib.shake_256(card.name.encode()).digest(4 * n * max_length)
    special = len(ENCODING["special"])
    tokens = np.frombuffer(stream, "<u4") % (vocabulary - special) + special
    return EncodedSplit(
        name="generated",
        row_ids=np.arange(n, dtype=np.int64),
        tokens=tokens.astype(np.int32),
        segments=None,
        offsets=np.arange(n + 1, dtype=np.int64) * max_length,
        labels=np.arange(n, dtype=np.int64) % len(card.classes),
    )
