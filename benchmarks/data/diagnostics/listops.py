"""Nested list operations after ListOps (Nangia and Bowman 2018), of which single tokens tell nothing.

An innermost operator is SM, the sum of two digits modulo the number of digits that there are. Every other
operator, MAX, MIN or MED (the median, rounded down where two values are in the middle), takes operators
as its arguments. The class of an input is the value of its expression. How deep operators are nested
and how many digits there are is chosen independently.

In the original any operator takes digits, so large ones alone speak for a large value. Here the value of
the whole is drawn first, each as likely, whatever the shape and the operators; then, from the outside in,
the values of each operator's arguments, among all that give its value. So each of a sum's two digits
alone is as likely whatever the sum is, and independent of the class, even if shape and operators are
known: no sum over single tokens, each with its position, does better than chance. To know the class,
one has to find which digits belong to which sum and, where operators are nested more than two deep,
which sums belong to which operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.data.diagnostics.shapes import Shape, draw

if TYPE_CHECKING:
    from benchmarks.data.diagnostics.stream import Stream

SUM = "[SM"
END = "]"
SUMMANDS = 2


def median(values: Sequence[int]) -> int:
    """The middle value; the mean of the middle two, rounded down, where there are two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


OUTER: dict[str, Callable[[Sequence[int]], int]] = {"[MAX": max, "[MIN": min, "[MED": median}
SIGNS = (*OUTER, SUM, END)
"""All tokens but the digits."""


@dataclass(frozen=True)
class Plan:
    """An expression without its digits.

    Attributes:
        shape: how operators are nested.
        names: of `OUTER`, one for each operator over operators, from left to right.
        value: of the whole expression.
        modulus: number of different digits, from 0.
    """

    shape: Shape
    names: tuple[str, ...]
    value: int
    modulus: int


def tokens(modulus: int) -> tuple[str, ...]:
    """All tokens, in the order of their ids."""
    return (*SIGNS, *map(str, range(modulus)))


def plan(stream: Stream, *, modulus: int, most_arguments: int, depth: int, digits: int) -> Plan:
    """Draws shape, operators and value independently; there must be a shape (`shapes.count`).

    Args:
        stream: where choices come from.
        modulus: number of different digits, from 0.
        most_arguments: of an operator over operators.
        depth: how deep operators are nested; 1 is a sum.
        digits: in the whole expression, two a sum.
    """
    value = stream.below(modulus)
    shape = draw(stream, most_arguments, depth, digits // SUMMANDS)
    names = tuple(stream.choice(tuple(OUTER)) for _ in range(outer_operators(shape)))
    return Plan(shape, names, value, modulus)


def expression(stream: Stream, plan: Plan) -> tuple[str, ...]:
    """Tokens of an expression after this plan: draws all values inside, from the outside in."""
    return tuple(_written(stream, plan.shape, iter(plan.names), plan.value, plan.modulus))


def outer_operators(shape: Shape) -> int:
    """Operators over operators."""
    return 1 + sum(map(outer_operators, shape)) if shape else 0


def _written(
    stream: Stream, shape: Shape, names: Iterator[str], value: int, modulus: int
) -> list[str]:
    if not shape:
        summands = stream.choice(_arguments(SUM, SUMMANDS, modulus)[value])
        return [SUM, *map(str, summands), END]
    name = next(names)
    values = stream.choice(_arguments(name, len(shape), modulus)[value])
    written = [name]
    for part, argument in zip(shape, values, strict=True):
        written += _written(stream, part, names, argument, modulus)
    return [*written, END]


@cache
def _arguments(name: str, n: int, modulus: int) -> dict[int, list[tuple[int, ...]]]:
    """All values that n arguments can have, by the value that the operator gives them."""
    found: dict[int, list[tuple[int, ...]]] = {value: [] for value in range(modulus)}
    for values in product(range(modulus), repeat=n):
        found[sum(values) % modulus if name == SUM else OUTER[name](values)].append(values)
    return found
