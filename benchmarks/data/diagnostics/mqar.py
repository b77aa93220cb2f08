"""Multi-query associative recall (Arora et al. 2023), as a classification task.

An input is a list of pairs of a key and its value, then a mark, then some of the keys as queries. A pair
is one token, so that a single layer of attention is enough to look a key up.
Its class is the value that more of the queried keys have than any other value. Each value stands
in the list equally often and keys say nothing of values, so no sum over single tokens, each with its
position, can do better than chance: to know the class, a query has to find its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.data.diagnostics.stream import Stream


@dataclass(frozen=True)
class Recall:
    """An input that was made.

    Attributes:
        keys: of each pair, all different.
        values: of each pair.
        queries: keys that are asked for, all different.
        answer: the most frequent value among the queried keys.
    """

    keys: tuple[int, ...]
    values: tuple[int, ...]
    queries: tuple[int, ...]
    answer: int


def recall(stream: Stream, *, pairs: int, queries: int, n_keys: int, n_values: int) -> Recall:
    """Draws an input; every answer is as likely as any other.

    A majority, floor(queries / 2) + 1, of the queried keys have the answer as their value; the others
    have other values.

    Args:
        stream: where choices come from.
        pairs: key-value pairs, a multiple of `n_values`.
        queries: keys asked for.
        n_keys: keys to choose from.
        n_values: different values, which are the classes.
    """
    keys = stream.sample(range(n_keys), pairs)
    values = stream.shuffled([pair % n_values for pair in range(pairs)])
    answer = stream.below(n_values)
    majority = queries // 2 + 1
    right = [key for key, value in zip(keys, values, strict=True) if value == answer]
    others = [key for key, value in zip(keys, values, strict=True) if value != answer]
    asked = [*stream.sample(right, majority), *stream.sample(others, queries - majority)]
    return Recall(tuple(keys), tuple(values), tuple(stream.shuffled(asked)), answer)
