"""What a data set's encoded form depends on, hashed: fast, static, and without the package itself."""

from __future__ import annotations

from typing import Any

from benchmarks.canonical import digest
from benchmarks.data.card import Card, find_card
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

PAD, UNK, SEP = 0, 1, 2


def data_hash(name: str, *, max_length: int, train_fraction: float = 1.0) -> str:
    """Identity of a data set as `load_text` with the same arguments would give it.

    Raises:
        UsageError: no such card.
        InvalidFileError: the card is invalid.
        DataError: its file of row ids is missing.
    """
    return card_hash(find_card(name), max_length=max_length, train_fraction=train_fraction)


def card_hash(card: Card, *, max_length: int, train_fraction: float) -> str:
    """Identity of a card's data: all that can change a token or a label, and not its prose."""
    return digest([encoding_key(card, train_fraction), max_length], length=16)


def encoding_key(card: Card, train_fraction: float) -> str:
    """Identity of the encoded texts before truncation."""
    declared = card.model_dump(
        include={"name", "task", "classes", "source", "reader", "splits"},
        exclude={"source": {"size_mb"}},
    )
    row_ids = None
    if card.splits is not None:
        if not card.splits_file.is_file():
            raise DataError(
                f"data set '{card.name}': its row ids, splits/{card.name}.json, are missing; "
                f"`python -m benchmarks.data.commit_splits {card.name}` writes them"
            )
        row_ids = sha256_of(card.splits_file)
    return digest([declared, row_ids, ENCODING, train_fraction], length=32)
