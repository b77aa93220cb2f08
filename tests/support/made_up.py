"""Small made-up cards and texts that several tests build on; pytest puts this folder on the path."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.data.load import EncodedSplit, TextData

TINY_CARD: dict[str, Any] = {
    "schema": 1,
    "name": "tiny",
    "title": "Tiny",
    "task": "single",
    "classes": ["a", "b"],
    "licence": {"package": "MIT", "data": "MIT"},
}
"""What a card says before its source, reader, splits and counts."""


def text_split(name: str, n: int, seed: int) -> EncodedSplit:
    """Texts of 1 to 8 tokens of three classes, each with tokens of its own for the most part."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n)
    labels = random.integers(0, 3, n)
    rows = zip(lengths, labels, strict=True)
    tokens = [random.integers(2, 12, length) + 6 * label for length, label in rows]
    return EncodedSplit(
        name=name,
        row_ids=np.arange(n, dtype=np.int64),
        tokens=np.concatenate(tokens).astype(np.int32),
        segments=None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=labels.astype(np.int64),
    )


def text_data(n_train: int) -> TextData:
    """A data set of `text_split`s, with 40 rows to validate on and no test split."""
    data = SimpleNamespace(
        card=SimpleNamespace(name="r8", run_name="r8"),
        classes=("a", "b", "c"),
        vocab_size=24,
        n_segments=1,
        max_length=8,
        hash="abc",
        partial=False,
        note="",
        train=text_split("train", n_train, 0),
        validation=text_split("validation", 40, 1),
    )
    return cast("TextData", data)
