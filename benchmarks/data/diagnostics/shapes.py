"""Shapes of nested expressions: how many there are of a depth and a size, and one of them by chance.

A shape is a tree of operators: `()` is an innermost one, and any other is the tuple of its arguments' shapes.
Its depth is the number of operators from the outermost to the deepest, its size the number of innermost
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from benchmarks.data.diagnostics.stream import Stream

Shape: TypeAlias = "tuple[Shape, ...]"

FEWEST = 2
"""Arguments of an operator that is not innermost."""


@cache
def count(most_arguments: int, depth: int, size: int) -> int:
    """Shapes of exactly this depth and size, each operator with two to `most_arguments` arguments."""
    if depth == 1:
        return int(size == 1)
    return sum(
        _rows(most_arguments, depth - 1, size, n, deep=True)
        for n in range(FEWEST, most_arguments + 1)
    )


def draw(stream: Stream, most_arguments: int, depth: int, size: int) -> Shape:
    """A shape of this depth and size, each as likely as any other; there must be one."""
    return _shape(most_arguments, depth, size, stream.below(count(most_arguments, depth, size)))


@cache
def _rows(most: int, depth: int, size: int, n: int, *, deep: bool) -> int:
    """Rows of n shapes, of this size together, none over `depth` deep; `deep`: and one so deep."""
    if n == 0:
        return int(size == 0 and not deep)
    return sum(
        ways * _rows(most, depth, size - own, n - 1, deep=deep and at != depth)
        for at, own, ways in _firsts(most, depth, size)
    )


def _firsts(most: int, depth: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Depth and size of each kind of shape that a row can begin with, and how many there are."""
    for at in range(1, depth + 1):
        for own in range(1, size + 1):
            if ways := count(most, at, own):
                yield at, own, ways


@lru_cache(maxsize=10_000)
def _shape(most: int, depth: int, size: int, rank: int) -> Shape:
    """The shape at this place, from 0, among all of its depth and size."""
    if depth == 1:
        return ()
    n = FEWEST
    while rank >= (rows := _rows(most, depth - 1, size, n, deep=True)):
        rank -= rows
        n += 1
    return _row(most, depth - 1, size, n, rank, deep=True)


def _row(most: int, depth: int, size: int, n: int, rank: int, *, deep: bool) -> Shape:
    if n == 0:
        return ()
    for at, own, ways in _firsts(most, depth, size):
        still = deep and at != depth
        others = _rows(most, depth, size - own, n - 1, deep=still)
        if rank < ways * others:
            break
        rank -= ways * others
    first = _shape(most, at, own, rank // others)
    return (first, *_row(most, depth, size - own, n - 1, rank % others, deep=still))
