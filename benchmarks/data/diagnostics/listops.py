"""Nested list operations (Nangia and Bowman 2018), made from the definition.

An expression is a digit, or an operator over two or more expressions: MAX, MIN, MED (the median,
rounded down where two values are in the middle) or SM (the sum modulo ten). The class of an input is
the value of its expression. How deep operators are nested decides how many steps it takes to find
it, each of which needs to know which arguments belong to which operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.data.diagnostics.stream import Stream

DIGITS = 10
END = "]"


def median(values: Sequence[int]) -> int:
    """The middle value; the mean of the middle two, rounded down, where there are two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


OPERATORS: dict[str, Callable[[Sequence[int]], int]] = {
    "[MAX": max,
    "[MIN": min,
    "[MED": median,
    "[SM": lambda values: sum(values) % DIGITS,
}
TOKENS = (*map(str, range(DIGITS)), *OPERATORS, END)


@dataclass(frozen=True)
class Expression:
    """An expression that was made, with its value.

    Attributes:
        tokens: as they are written, of `TOKENS`.
        value: 0 to 9.
        operations: operators in it.
    """

    tokens: tuple[str, ...]
    value: int
    operations: int


def digit(stream: Stream) -> Expression:
    """A digit, each as likely as any other."""
    value = stream.below(DIGITS)
    return Expression((str(value),), value, 0)


def expression(stream: Stream, depth: int, most_arguments: int) -> Expression:
    """An expression in which operators are nested exactly `depth` deep.

    Of an operator's two to `most_arguments` arguments one, anywhere among them, is as deep as it has
    to be; each of the others is a digit or, as likely, an operator over digits where depth allows.

    Args:
        stream: where choices come from.
        depth: 0 for a digit.
        most_arguments: at least 2.
    """
    if depth == 0:
        return digit(stream)
    name = stream.choice(tuple(OPERATORS))
    n = stream.between(2, most_arguments)
    deep = stream.below(n)
    arguments = [
        expression(stream, depth - 1 if place == deep else _depth(stream, depth), most_arguments)
        for place in range(n)
    ]
    return Expression(
        tokens=(name, *(token for each in arguments for token in each.tokens), END),
        value=OPERATORS[name]([each.value for each in arguments]),
        operations=1 + sum(each.operations for each in arguments),
    )


def _depth(stream: Stream, depth: int) -> int:
    return min(depth - 1, stream.below(2))
