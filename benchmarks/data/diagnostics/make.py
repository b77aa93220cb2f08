"""The inputs of a diagnostic: the same for the same card, on every machine and with every library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.data.diagnostics import listops, mqar
from benchmarks.data.diagnostics.stream import Stream
from benchmarks.data.generated import SPECIAL, GeneratedTask, ListOps, Recall
from benchmarks.data.identity import SEP
from benchmarks.errors import DataError

Split = Literal["train", "validation", "test"]
MOST_DRAWS = 1000


@dataclass(frozen=True)
class Example:
    """One input: token ids, class, and what makes it hard, by name."""

    tokens: tuple[int, ...]
    label: int
    difficulty: dict[str, int]


@dataclass(frozen=True)
class Made:
    """The inputs of one split.

    Attributes:
        tokens: int32, the inputs one after another.
        offsets: (n + 1,) int64, where each starts.
        labels: (n,) int64.
        difficulty: (n,) int64 each, by name.
    """

    tokens: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    difficulty: dict[str, npt.NDArray[np.int64]]


@lru_cache(maxsize=4)
def make(name: str, source: GeneratedTask) -> dict[Split, Made]:
    """All splits.

    Inputs of test and validation are all different, and no training input is one of them; a draw
    that would break this is made again. Training inputs may repeat.

    Args:
        name: of the card; another name gives other inputs.
        source: task and number of rows.

    Raises:
        DataError: the task has too few different inputs.
    """
    seen: set[tuple[int, ...]] = set()
    made = {}
    splits: tuple[Split, ...] = ("test", "validation", "train")
    for split in splits:
        examples = []
        for index in range(getattr(source.rows, split)):
            example = _new(name, source, split, index, seen)
            examples.append(example)
            if split != "train":
                seen.add(example.tokens)
        made[split] = _joined(examples)
    return made


def draws(name: str, source: GeneratedTask, split: Split, index: int) -> Iterator[Example]:
    """What one row could be, in the order in which it is tried."""
    stream = Stream(f"{name}:{split}:{index}")
    if isinstance(source.task, ListOps):
        return _listops(source.task, stream)
    return _mqar(source.task, stream)


def _new(
    name: str, source: GeneratedTask, split: Split, index: int, seen: set[tuple[int, ...]]
) -> Example:
    for _, example in zip(range(MOST_DRAWS), draws(name, source, split, index), strict=False):
        if example.tokens not in seen:
            return example
    raise DataError(
        f"data set '{name}': source.rows: the task has too few different inputs for so many rows; "
        f"{MOST_DRAWS} draws for row {index} of {split} were all taken"
    )


def _listops(task: ListOps, stream: Stream) -> Iterator[Example]:
    depth, digits = stream.choice(task.depths), stream.choice(task.digits)
    # kept for all draws: were class and operators drawn anew where an input is taken, the classes that
    # few expressions have would become rarer, and operators would tell of the class
    plan = listops.plan(
        stream,
        modulus=task.modulus,
        most_arguments=task.most_arguments,
        depth=depth,
        digits=digits,
    )
    ids = {token: SPECIAL + place for place, token in enumerate(listops.tokens(task.modulus))}
    operations = listops.outer_operators(plan.shape) + digits // listops.SUMMANDS
    difficulty = {"depth": depth, "digits": digits, "operations": operations}
    while True:
        written = listops.expression(stream, plan)
        yield Example(tuple(ids[token] for token in written), plan.value, difficulty)


def _mqar(task: Recall, stream: Stream) -> Iterator[Example]:
    while True:
        yield _recall(task, stream)


def _recall(task: Recall, stream: Stream) -> Example:
    pairs = stream.choice(task.pairs)
    made = mqar.recall(
        stream, pairs=pairs, queries=task.queries, n_keys=task.keys, n_values=task.values
    )
    first_query = SPECIAL + task.keys * task.values
    listed = [
        SPECIAL + key * task.values + value
        for key, value in zip(made.keys, made.values, strict=True)
    ]
    asked = [first_query + key for key in made.queries]
    return Example((*listed, SEP, *asked), made.answer, {"pairs": pairs})


def _joined(examples: list[Example]) -> Made:
    lengths = [len(example.tokens) for example in examples]
    return Made(
        tokens=np.array([t for example in examples for t in example.tokens], np.int32),
        offsets=np.cumsum([0, *lengths], dtype=np.int64),
        labels=np.array([example.label for example in examples], np.int64),
        difficulty={
            name: np.array([example.difficulty[name] for example in examples], np.int64)
            for name in examples[0].difficulty
        },
    )
