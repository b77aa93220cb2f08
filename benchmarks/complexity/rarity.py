"""How rare the words of an input are."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.complexity.words import without_marks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.complexity.words import Document


class Frequencies:
    """How often each word stands in the training split; punctuation marks are no words here.

    Args:
        training: the training split's inputs.
    """

    def __init__(self, training: Iterable[Document]) -> None:
        self._counts = Counter(
            word for document in training for words in document for word in without_marks(words)
        )
        self._total = self._counts.total() + len(self._counts) + 1

    def surprise(self, word: str) -> float:
        """-log of the word's frequency in nats, one added to every count so that none is 0."""
        return math.log(self._total) - math.log(self._counts[word] + 1)


def rarity(document: Document, frequencies: Frequencies) -> float:
    """Mean surprise of the input's words, in nats; NaN for an input without any."""
    words = [word for text in document for word in without_marks(text)]
    if not words:
        return math.nan
    return math.fsum(frequencies.surprise(word) for word in words) / len(words)
