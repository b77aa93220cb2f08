"""ListOps: its values against an independent evaluator, its shapes, its dials, what tokens tell."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from statistics import median_low
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.catalog import DATASETS
from benchmarks.data.diagnostics.listops import expression, outer_operators, plan, tokens
from benchmarks.data.diagnostics.make import make
from benchmarks.data.diagnostics.shapes import Shape, count, draw
from benchmarks.data.diagnostics.stream import Stream
from benchmarks.data.generated import MOST_DIGITS, SPECIAL, GeneratedTask, ListOps
from benchmarks.data.load import EncodedSplit, load_card_text, load_text
from benchmarks.planning.points import Point

TASK = {
    "name": "listops",
    "modulus": 4,
    "depths": [2, 3],
    "digits": [6, 8],
    "most_arguments": 4,
}


def evaluate(text: str, modulus: int) -> tuple[int, int, int]:
    """Value, depth and operators of an expression, by way of Python's own parser."""
    counted = text.count("[")

    class Value(int):
        depth: int

    def made(function: Any) -> Any:
        def call(*values: int) -> Value:
            assert len(values) > 1
            innermost = not any(isinstance(value, Value) for value in values)
            # digits stand in sums, and sums hold nothing else
            assert all(isinstance(value, Value) for value in values) or innermost
            assert innermost == (function is total)
            result = Value(function(sorted(values)))
            result.depth = 1 + max(getattr(value, "depth", 0) for value in values)
            return result

        return call

    def middle(values: list[int]) -> int:
        half, odd = divmod(len(values), 2)
        return values[half] if odd else sum(values[half - 1 : half + 1]) // 2

    def total(values: list[int]) -> int:
        return len([None for value in values for _ in range(value)]) % modulus

    names = {
        "MAX": made(lambda values: values[-1]),
        "MIN": made(lambda values: values[0]),
        "MED": made(middle),
        "SM": made(total),
    }
    called = {"]": "),", **{f"[{name}": f"{name}(" for name in names}}
    python = "".join(called.get(token, f"{token},") for token in text.split())
    value = eval(python.strip(","), {"__builtins__": {}}, names)  # noqa: S307 - our own text
    return int(value), value.depth, counted


def test_the_evaluator_knows_the_definition() -> None:
    assert evaluate("[MAX [SM 2 9 ] [MIN [SM 4 0 ] [SM 7 1 ] ] ]", 10) == (4, 3, 5)
    assert evaluate("[MED [SM 8 9 ] [SM 1 2 ] [SM 9 9 ] [SM 0 0 ] ]", 10) == (5, 2, 5)
    assert evaluate("[MED [SM 9 0 ] [SM 1 0 ] [SM 5 0 ] ]", 10)[0] == median_low([1, 5, 9])
    with pytest.raises(AssertionError):
        evaluate("[MAX [SM 1 2 ] 3 ]", 10)
    with pytest.raises(AssertionError):
        evaluate("[MAX 1 2 ]", 10)


@given(st.data(), st.integers(1, 4), st.integers(2, 6), st.integers(2, 4), st.integers(0, 10**6))
def test_listops_value_depth_digits_and_operators_are_as_evaluated(
    data: st.DataObject, depth: int, modulus: int, most_arguments: int, seed: int
) -> None:
    possible = [2 * n for n in range(1, 9) if count(most_arguments, depth, n)]
    digits = data.draw(st.sampled_from(possible))
    stream = Stream(f"test {seed}")
    planned = plan(
        stream,
        modulus=modulus,
        most_arguments=most_arguments,
        depth=depth,
        digits=digits,
    )
    made = expression(stream, planned)
    operations = outer_operators(planned.shape) + digits // 2
    assert evaluate(" ".join(made), modulus) == (planned.value, depth, operations)
    assert sum(token.isdigit() for token in made) == digits
    assert set(made) <= set(tokens(modulus))
    task = {"depths": [depth], "digits": [digits], "most_arguments": most_arguments}
    assert len(made) <= ListOps.model_validate(TASK | task).longest


def shapes_by_hand(most_arguments: int, depth: int) -> list[tuple[Shape, int, int]]:
    """Every shape at most so deep, with its depth and size: by building them all."""
    found: list[tuple[Shape, int, int]] = [((), 1, 1)]
    if depth > 1:
        parts = shapes_by_hand(most_arguments, depth - 1)
        for n in range(2, most_arguments + 1):
            for row in product(parts, repeat=n):
                shape = tuple(part for part, _, _ in row)
                found.append((shape, 1 + max(d for _, d, _ in row), sum(m for *_, m in row)))
    return found


@pytest.mark.parametrize(("most_arguments", "depth"), [(2, 4), (3, 3), (5, 2)])
def test_shapes_are_counted(most_arguments: int, depth: int) -> None:
    every = shapes_by_hand(most_arguments, depth)
    assert len(set(every)) == len(every)
    counts = Counter((at, size) for _, at, size in every)
    largest = max(size for *_, size in every)
    for at, size in product(range(1, depth + 1), range(largest + 2)):
        assert count(most_arguments, at, size) == counts[at, size]


def test_each_shape_is_as_likely() -> None:
    wanted = {shape for shape, *of in shapes_by_hand(3, 3) if of == [3, 5]}
    stream = Stream("shapes")
    drawn = Counter(draw(stream, 3, 3, 5) for _ in range(600 * len(wanted)))
    assert len(wanted) > 3
    assert drawn.keys() == wanted
    assert all(abs(n - 600) < 100 for n in drawn.values())


def test_a_choice_among_all_shapes_can_be_made() -> None:
    # a stream's choices are of at most 32 bits
    assert max(count(5, depth, MOST_DIGITS // 2) for depth in range(1, 13)) < 2**32


class Script(Stream):
    """A stream that makes the choices it is told, and writes down out of how many."""

    def __init__(self, choices: list[int]) -> None:
        super().__init__("never read")
        self.choices = choices
        self.sizes: list[int] = []

    def below(self, n: int) -> int:
        self.sizes.append(n)
        if len(self.sizes) > len(self.choices):
            self.choices.append(0)
        return self.choices[len(self.sizes) - 1]


def every_expression(
    modulus: int, depth: int, digits: int
) -> Iterator[tuple[tuple[str, ...], int, Fraction]]:
    """All that can be made, with the probability of each: every choice is made every way."""
    choices: list[int] = []
    while True:
        script = Script(choices)
        planned = plan(script, modulus=modulus, most_arguments=3, depth=depth, digits=digits)
        yield expression(script, planned), planned.value, Fraction(1, prod(script.sizes))
        while choices and choices[-1] + 1 == script.sizes[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1


@pytest.mark.parametrize(
    ("modulus", "depth", "digits"), [(5, 1, 2), (3, 2, 4), (4, 2, 4), (3, 2, 6), (2, 3, 6)]
)
def test_no_single_token_says_anything_of_a_listops_answer(
    modulus: int, depth: int, digits: int
) -> None:
    """Exactly, over the whole distribution: even where operators and brackets are known.

    The loss of a sum over (position, token) is convex in its weights. Where class and each token are
    independent its gradient is zero at the constant answer, so nothing better can be learned.
    """
    answers: dict[int, Fraction] = defaultdict(Fraction)
    skeletons: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    single: dict[tuple[tuple[str, ...], int, str, int], Fraction] = defaultdict(Fraction)
    for made, value, p in every_expression(modulus, depth, digits):
        skeleton = tuple("d" if token.isdigit() else token for token in made)
        answers[value] += p
        skeletons[skeleton] += p
        for place, token in enumerate(made):
            if token.isdigit():
                single[skeleton, place, token, value] += p
    assert set(answers.values()) == {Fraction(1, modulus)}
    assert sum(skeletons.values()) == 1
    assert len(single) == len(skeletons) * digits * modulus**2
    for (skeleton, *_), p in single.items():
        assert p == skeletons[skeleton] / modulus**2


def features(split: EncodedSplit, size: int) -> NDArray[np.float64]:
    """(n, size x length + 1): which token stands where, divided by the length, and a constant.

    A model without attention is a sum over such features: it averages what it makes of each token.
    """
    rows = np.repeat(np.arange(len(split)), split.lengths)
    places = np.concatenate([np.arange(n) for n in split.lengths])
    columns = places * size + split.tokens
    made = np.zeros((len(split), size * int(split.lengths.max()) + 1))
    made[rows, columns] = 1 / split.lengths[rows]
    made[:, -1] = 1
    return made


def fitted(x: NDArray[np.float64], labels: NDArray[np.int64], seen: int) -> float:
    """Accuracy, on the other rows, of the least-squares classifier of the first `seen`."""
    wanted = np.eye(labels.max() + 1)[labels]
    weights, *_ = np.linalg.lstsq(x[:seen], wanted[:seen], rcond=None)
    return float(np.mean((x[seen:] @ weights).argmax(1) == labels[seen:]))


def test_a_fitted_sum_over_tokens_stays_at_chance_on_listops_and_one_over_sums_does_not() -> None:
    data = load_text("listops", max_length=28)
    train = data.train
    x = features(train, data.vocab_size)
    chance, error = 1 / 4, (3 / 16 / 5000) ** 0.5
    assert abs(fitted(x, train.labels, 15_000) - chance) < 3 * error
    # the values of the innermost sums tell a lot: the task is no noise
    words = tokens(4)
    sums = np.zeros((len(train), 5 * 4))
    for row, ids in enumerate(np.split(train.tokens, train.offsets[1:-1])):
        text = " ".join(words[token - SPECIAL] for token in ids)
        for place, inside in enumerate(re.findall(r"\[SM ([\d ]+)\]", text)):
            sums[row, 4 * place + sum(map(int, inside.split())) % 4] = 1
    assert fitted(sums, train.labels, 15_000) > 0.4


def test_each_depth_of_listops_meets_each_number_of_digits() -> None:
    card = DATASETS.get("listops")
    assert isinstance(card.source, GeneratedTask)
    assert isinstance(card.source.task, ListOps)
    made = make("listops", card.source)["test"]
    words = tokens(4)
    rows = np.split(made.tokens, made.offsets[1:-1])
    for row in range(50):
        written = [words[token - SPECIAL] for token in rows[row]]
        found = evaluate(" ".join(written), 4)
        own = (made.labels[row], *(made.difficulty[n][row] for n in ("depth", "operations")))
        assert found == own
        assert made.difficulty["digits"][row] == sum(word.isdigit() for word in written)
    cells = Counter(
        zip(made.difficulty["depth"].tolist(), made.difficulty["digits"].tolist(), strict=True)
    )
    task = card.source.task
    assert cells.keys() == set(product(task.depths, task.digits))
    assert min(cells.values()) > 0.8 * len(made.labels) / len(cells)
    assert task.dials == ("depth", "digits")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"digits": [6, 10]}, "depth 2 has 10, two a sum; nearest that one has: 4, 6, 8"),
        ({"digits": [6, 7]}, "depth 2 has 7"),
        ({"depths": [1]}, "depth 1 has 6, two a sum; nearest that one has: 2"),
    ],
)
def test_listops_that_cannot_be_made_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ListOps.model_validate({**TASK, **changed})


@pytest.mark.slow
def test_attention_learns_listops_and_without_it_nothing_does() -> None:
    from benchmarks.training.build import build_config, build_model
    from benchmarks.training.evaluate import accuracy, predict
    from benchmarks.training.loop import train
    from benchmarks.training.recipe import Recipe

    card = DATASETS.get("listops")
    assert isinstance(card.source, GeneratedTask)
    easy = TASK | {"depths": [2], "digits": [6]}
    rows = {"train": 10_000, "validation": 60, "test": 300}
    source = {"kind": "generated-task", "rows": rows, "task": easy}
    data = load_card_text(
        card.model_copy(update={"source": GeneratedTask.model_validate(source)}), max_length=16
    )
    found = {}
    for model in ("dense", "no-attention"):
        point = Point(model, {"dropout": 0.0}, "listops", 16)
        built = build_model(build_config(point, data), seed=0)
        train(built, data, Recipe(epochs=4), seed=0)
        test = data.test()
        found[model] = accuracy(test.labels, predict(built, test).predicted)
    assert found["dense"] > 0.8
    assert found["no-attention"] < 0.35
