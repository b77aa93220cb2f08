"""The words of each input, as far as a model sees them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.data.fetch import data_path
from benchmarks.data.readers import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.data.load import EncodedSplit, TextData

Words = list[str]
Document = tuple[Words, ...]
"""One list of words for each text of an input."""

_WORD = re.compile(r"\w")


def documents(data: TextData, *splits: EncodedSplit) -> list[list[Document]]:
    """The words of every input of these splits, cut where the model's input is cut.

    Words are those of the benchmark's own vocabulary: lower-cased, without accents, split at white
    space and punctuation; each punctuation mark is a word too. For a diagnostic a word is a token.

    Args:
        data: in the benchmark's own vocabulary, where a token is a word.
        splits: of `data`.

    Raises:
        DataError: the data set is not here, or altered.
    """
    if data.card.is_generated:
        return [_tokens(split) for split in splits]
    rows = read_rows(data.card, data_path(data.card))
    split_words = splitter()

    def cut(row: int, kept: Sequence[int]) -> Document:
        return tuple(split_words(text)[:n] for text, n in zip(rows.texts[row], kept, strict=True))

    return [
        [cut(int(row), kept) for row, kept in zip(split.row_ids, _kept(split), strict=True)]
        for split in splits
    ]


@cache
def splitter() -> Callable[[str], Words]:
    """A function from a text to its words, as `benchmarks.data.vocabulary` splits them."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer = normalizers.BertNormalizer(lowercase=True)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def split(text: str) -> Words:
        found = pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))
        return [word for word, _ in found]

    return split


def without_marks(words: Words) -> Words:
    """The words that hold a letter or a digit."""
    return [word for word in words if _WORD.search(word)]


def _kept(split: EncodedSplit) -> list[list[int]]:
    """Words kept of each text of each input."""
    if split.segments is None:
        return [[int(n)] for n in split.lengths]
    second = np.add.reduceat(split.segments.astype(np.int64), split.offsets[:-1])
    # of the rest, one token is the separator
    return [[int(n - s) - 1, int(s)] for n, s in zip(split.lengths, second, strict=True)]


def _tokens(split: EncodedSplit) -> list[Document]:
    parts = np.split(split.tokens, split.offsets[1:-1])
    return [([str(token) for token in part],) for part in parts]
