"""How many words the two texts of a pair share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.complexity.words import without_marks

if TYPE_CHECKING:
    from benchmarks.complexity.words import Document


def overlap(document: Document) -> float:
    """Jaccard index of the two texts' sets of words, in [0, 1]; NaN where neither has a word."""
    first, second = (set(without_marks(words)) for words in document)
    return len(first & second) / len(first | second) if first | second else math.nan
