"""Sources of diagnostics: tasks made by this program, whose difficulty is known for each input."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from benchmarks.data.sources import Strict

SPECIAL = 3
"""The first token ids are those of texts: padding, unknown, separator."""

Depth = Annotated[int, Field(ge=1, le=12)]


class ListOps(Strict):
    """Nested list operations (`benchmarks.data.diagnostics.listops`); depth and width are the dial."""

    name: Literal["listops"]
    depths: tuple[Depth, ...] = Field(
        min_length=1, description="how deep operators are nested; each is as likely"
    )
    most_arguments: int = Field(ge=2, le=10, description="of an operator; it has at least two")

    @property
    def n_classes(self) -> int:
        """The digits."""
        return 10

    @property
    def vocab_size(self) -> int:
        """Special tokens, digits, four operators, closing bracket."""
        return SPECIAL + 15

    @property
    def longest(self) -> int:
        """Most tokens that an input can have."""
        shallow = self.most_arguments + 2
        length = shallow
        for _ in range(max(self.depths) - 1):
            length += 2 + (self.most_arguments - 1) * shallow
        return length


class Recall(Strict):
    """Multi-query recall (`benchmarks.data.diagnostics.mqar`); the number of pairs is the dial."""

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
