"""What a data set's encoded form depends on, hashed: fast, static, and without the package itself."""

from __future__ import annotations

from typing import Any

from benchmarks.canonical import digest
from benchmarks.data.card import Card, find_card
from benchmarks.data.generated import GeneratedTask
from benchmarks.data.sources import HubSource
from benchmarks.data.weights import find_weights, vocabulary_card
from benchmarks.errors import DataError
from benchmarks.running.files import sha256_of

ENCODING: dict[str, Any] = {
    "model": "word",
    "size": 8000,
    "min_frequency": 2,
    "special": ["[PAD]", "[UNK]", "[SEP]"],
    "version": 1,
}
"""How texts become tokens. Part of every data hash; `version` moves when the code's rules do."""

LATER: dict[str, dict[str, Any]] = {
    "reader": {"encodings": ("utf-8",), "join": False, "drop_label": None},
    "splits": {"unique": False},
}
"""Options that cards got later, with their defaults: they count only where a card uses them, so that
the hashes of older cards stay."""

SPLIT_RULE = 1
"""Moves when `benchmarks.data.splits` gives other row ids; counts where no row ids are committed."""

GENERATORS = {"listops": 2, "mqar": 1}
"""Moves when the generator of a diagnostic gives other inputs; the code itself is in no key."""

PAD, UNK, SEP = 0, 1, 2

PIECES: dict[str, Any] = {
    "model": "word piece",
    "lower_case": True,
    "special": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"],
    "version": 1,
}
"""The same for texts in a pretrained vocabulary, beside the package that it lies in."""


PIXELS: dict[str, Any] = {"square": "centre crop", "resize": "bicubic", "version": 1}
"""How images become pixels of one size (`benchmarks.data.pixels`), in place of an encoding."""


def data_hash(
    name: str, *, max_length: int, train_fraction: float = 1.0, vocabulary: str | None = None
) -> str:
    """Identity of a data set as `load_data` with the same arguments would give it.

    Raises:
        UsageError: no such card, or no such weights to take the vocabulary of.
        InvalidFileError: the card is invalid.
        DataError: its file of row ids is missing.
    """
    return card_hash(
        find_card(name),
        max_length=max_length,
        train_fraction=train_fraction,
        vocabulary=vocabulary,
    )


def card_hash(
    card: Card, *, max_length: int, train_fraction: float, vocabulary: str | None = None
) -> str:
    """Identity of a card's data: all that can change a token, pixel or label, and not its prose."""
    return digest([encoding_key(card, train_fraction, vocabulary), max_length], length=16)


def encoding_key(card: Card, train_fraction: float, vocabulary: str | None = None) -> str:
    """Identity of the encoded texts before truncation, or of the images before they are resized."""
    declared = card.model_dump(
        include={"name", "task", "classes", "source", "reader", "splits"},
        exclude={"source": {"size_mb", "folder"}},
    )
    for table, options in LATER.items():
        if declared[table] is not None:
            declared[table] = {
                key: value
                for key, value in declared[table].items()
                if key not in options or value != options[key]
            }
    if card.images is not None:
        declared["images"] = card.images.model_dump()
    row_ids: str | int | None = None
    if isinstance(card.source, GeneratedTask):
        row_ids = GENERATORS[card.source.task.name]
    elif card.computes_splits:
        row_ids = SPLIT_RULE
    elif card.splits is not None and not isinstance(card.source, HubSource):
        if not card.splits_file.is_file():
            raise DataError(
                f"data set '{card.name}': its row ids, splits/{card.name}.json, are missing; "
                f"`python -m benchmarks.data.commit_splits {card.name}` writes them"
            )
        row_ids = sha256_of(card.splits_file)
    return digest([declared, row_ids, _encoding(card, vocabulary), train_fraction], length=32)


def _encoding(card: Card, vocabulary: str | None) -> dict[str, Any]:
    if card.is_image:
        return PIXELS
    return ENCODING if vocabulary is None else _pieces(vocabulary)


def _pieces(weights: str) -> dict[str, Any]:
    holder = vocabulary_card(find_weights(weights))
    return {**PIECES, "package": holder.source.sha256, "path": holder.pieces.path}
