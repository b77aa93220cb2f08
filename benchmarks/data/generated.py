"""Sources of diagnostics: tasks made by this program, whose difficulty is known for each input."""

from __future__ import annotations

from itertools import product
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from benchmarks.data.diagnostics.listops import SIGNS, SUMMANDS
from benchmarks.data.diagnostics.shapes import count
from benchmarks.data.sources import Strict

SPECIAL = 3
"""The first token ids are those of texts: padding, unknown, separator."""

Depth = Annotated[int, Field(ge=1, le=12)]
MOST_DIGITS = 32
"""Of an expression: beyond, there are more shapes than a choice can be made of."""


class ListOps(Strict):
    """Nested list operations (`benchmarks.data.diagnostics.listops`); depth and digits are the dials."""

    dials: ClassVar[tuple[str, ...]] = ("depth", "digits")

    name: Literal["listops"]
    modulus: int = Field(ge=2, le=10, description="digits are below it; sums are modulo it")
    depths: tuple[Depth, ...] = Field(
        min_length=1, description="how deep operators are nested; each is as likely"
    )
    digits: tuple[Annotated[int, Field(ge=2, le=MOST_DIGITS)], ...] = Field(
        min_length=1, description="length of an input in digits; each is as likely at every depth"
    )
    most_arguments: int = Field(ge=2, le=5, description="of an operator over operators")

    @property
    def n_classes(self) -> int:
        """The digits."""
        return self.modulus

    @property
    def vocab_size(self) -> int:
        """Special tokens, operators and closing bracket, digits."""
        return SPECIAL + len(SIGNS) + self.modulus

    @property
    def longest(self) -> int:
        """No input has more tokens: there are fewer operators over operators than sums."""
        sums = max(self.digits) // SUMMANDS
        return (SUMMANDS + 2) * sums + 2 * (sums - 1)

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        for depth, digits in product(self.depths, self.digits):
            possible = [
                n
                for n in range(SUMMANDS, MOST_DIGITS + 1, SUMMANDS)
                if count(self.most_arguments, depth, n // SUMMANDS)
            ]
            if digits not in possible:
                nearest = sorted(sorted(possible, key=lambda n: abs(n - digits))[:3])
                told = ", ".join(map(str, nearest)) or f"none up to {MOST_DIGITS}"
                raise ValueError(
                    f"digits: no expression of depth {depth} has {digits}, two a sum; nearest "
                    f"that one has: {told}"
                )
        return self


class Recall(Strict):
    """Multi-query recall (`benchmarks.data.diagnostics.mqar`); the number of pairs is the dial."""

    dials: ClassVar[tuple[str, ...]] = ("pairs",)

    name: Literal["mqar"]
    pairs: tuple[Annotated[int, Field(ge=2, le=1024)], ...] = Field(
        min_length=1, description="key-value pairs of an input; each number is as likely"
    )
    queries: int = Field(ge=1, description="keys asked for")
    keys: int = Field(ge=2, description="keys to choose from")
    values: int = Field(ge=2, description="different values, which are the classes")

    @property
    def n_classes(self) -> int:
        """The values."""
        return self.values

    @property
    def vocab_size(self) -> int:
        """Special tokens, of which the separator is the mark, a token for each pair, queries."""
        return SPECIAL + self.keys * self.values + self.keys

    @property
    def longest(self) -> int:
        """Most tokens that an input can have."""
        return max(self.pairs) + 1 + self.queries

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        fewest, most = min(self.pairs), max(self.pairs)
        for pairs in self.pairs:
            if pairs % self.values:
                raise ValueError(
                    f"pairs: each value stands in an input equally often, so {pairs} pairs "
                    f"would have to be a multiple of {self.values} values"
                )
        if self.keys < most:
            raise ValueError(f"keys: {most} pairs have as many different keys, not {self.keys}")
        majority = self.queries // 2 + 1
        per_value = fewest // self.values
        if majority > per_value or self.queries - majority > fewest - per_value:
            raise ValueError(
                f"queries: {majority} of {self.queries} must be keys of one value and the rest keys "
                f"of others; with {fewest} pairs and {self.values} values there are too few"
            )
        return self


class TaskRows(Strict):
    """Inputs of each split."""

    train: int = Field(gt=0)
    validation: int = Field(gt=0)
    test: int = Field(gt=0)


class GeneratedTask(Strict):
    """A diagnostic: its inputs come off a hash, so they are the same bytes everywhere and for ever."""

    kind: Literal["generated-task"]
    rows: TaskRows
    task: ListOps | Recall = Field(discriminator="name")
