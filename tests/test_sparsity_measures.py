"""Sparsity of attention rows and agreement of rankings, against values that can be worked out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.sparsity.measures import MEASURES
from benchmarks.sparsity.ranking import average_precision, overlap

WEIGHTS = st.lists(st.integers(0, 1000), min_size=2, max_size=40).filter(any)
KEPT_AND_SCORES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8)), min_size=2, max_size=30
).filter(lambda rows: len({kept for kept, _ in rows}) == 2)


def row(*weights: float) -> Tensor:
    values = torch.tensor(weights, dtype=torch.float64)
    return values / values.sum()


def measured(weights: Tensor, keys: int | None = None) -> dict[str, float]:
    n = torch.tensor(weights.shape[-1] if keys is None else keys)
    return {name: float(measure(weights, n)) for name, measure in MEASURES.items()}


@pytest.mark.parametrize("n", [2, 7, 10, 11, 30, 197])
def test_a_uniform_row_and_a_single_weight_are_the_two_ends(n: int) -> None:
    top = math.ceil(n / 10)
    assert measured(row(*[1.0] * n)) == pytest.approx(
        {"concentration": 0, "top_mass": top / n, "hoyer": 0, "below_uniform": 0}, abs=1e-12
    )
    assert measured(row(1, *[0] * (n - 1))) == pytest.approx(
        {"concentration": 1, "top_mass": 1, "hoyer": 1, "below_uniform": (n - 1) / n}
    )


def test_a_row_made_by_hand() -> None:
    weights = row(8, 4, 2, 1, 1)
    entropy = 0.5 * math.log(2) + 0.25 * math.log(4) + 0.125 * math.log(8) + 0.125 * math.log(16)
    length = math.sqrt(64 + 16 + 4 + 1 + 1) / 16
    assert measured(weights) == pytest.approx(
        {
            "concentration": 1 - entropy / math.log(5),
            "top_mass": 0.5,
            "hoyer": (math.sqrt(5) - 1 / length) / (math.sqrt(5) - 1),
            "below_uniform": 3 / 5,
        }
    )


def test_the_top_tenth_is_rounded_up_and_not_by_floating_point() -> None:
    assert measured(row(*range(1, 31)))["top_mass"] == pytest.approx((30 + 29 + 28) / 465)
    assert measured(row(*range(1, 32)))["top_mass"] == pytest.approx((31 + 30 + 29 + 28) / 496)


def test_rows_of_one_key_say_nothing() -> None:
    assert all(math.isnan(value) for value in measured(row(1.0)).values())
    assert all(math.isnan(value) for value in measured(row(1.0, 0.0, 0.0), keys=1).values())


def test_weights_that_float32_rounds_still_count_as_uniform() -> None:
    scores = torch.full((1, 197), 3.7).softmax(-1)
    assert float(MEASURES["below_uniform"](scores, torch.tensor([197]))) == 0


def test_rows_of_different_numbers_of_keys_in_one_tensor() -> None:
    weights = torch.stack([row(8, 4, 2, 1, 1), row(3, 1, 0, 0, 0)])
    for name, measure in MEASURES.items():
        together = measure(weights, torch.tensor([5, 2]))
        assert float(together[0]) == pytest.approx(measured(row(8, 4, 2, 1, 1))[name])
        assert float(together[1]) == pytest.approx(measured(row(3, 1))[name])


@given(WEIGHTS)
def test_measures_lie_between_0_and_1(weights: list[int]) -> None:
    assert all(0 <= value <= 1 for value in measured(row(*weights)).values())


@given(WEIGHTS, st.randoms(use_true_random=False))
def test_the_order_of_the_keys_does_not_matter(weights: list[int], random: Any) -> None:
    shuffled = random.sample(weights, len(weights))
    assert measured(row(*shuffled)) == pytest.approx(measured(row(*weights)), abs=1e-9)


@given(WEIGHTS, st.integers(1, 20))
def test_padding_is_no_key(weights: list[int], padding: int) -> None:
    padded = torch.cat([row(*weights), torch.zeros(padding, dtype=torch.float64)])
    assert measured(padded, keys=len(weights)) == pytest.approx(measured(row(*weights)), abs=1e-12)


@given(WEIGHTS, st.integers(1, 20), st.randoms(use_true_random=False))
def test_places_without_a_key_may_lie_anywhere(
    weights: list[int], missing: int, random: Any
) -> None:
    """Tokens that a model halts leave gaps between those that it keeps."""
    order = random.sample(range(len(weights) + missing), len(weights) + missing)
    scattered = torch.cat([row(*weights), torch.zeros(missing, dtype=torch.float64)])[order]
    found = measured(scattered, keys=len(weights))
    assert found == pytest.approx(measured(row(*weights)), abs=1e-9)


@given(st.integers(2, 40), st.floats(0, 0.99), st.floats(0, 0.99))
def test_more_weight_on_one_key_is_never_less_sparse(n: int, some: float, more: float) -> None:
    some, more = sorted((some, more))
    rest = row(*[1.0] * n)
    one = row(1.0, *[0.0] * (n - 1))
    before, after = (measured((1 - part) * rest + part * one) for part in (some, more))
    for name in ("concentration", "top_mass", "hoyer"):
        assert after[name] >= before[name] - 1e-9


def test_overlap_and_precision_by_hand() -> None:
    kept = np.array([True, False, True, False, True])
    scores = np.array([0.9, 0.8, 0.7, 0.1, 0.2])
    assert overlap(kept, scores) == pytest.approx(2 / 3)
    # found at ranks 1, 3 and 4
    assert average_precision(kept, scores) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert overlap(kept, kept.astype(float)) == 1
    assert average_precision(kept, kept.astype(float)) == 1
    assert average_precision(kept, np.zeros(5)) == pytest.approx(3 / 5)


@pytest.mark.parametrize("kept", [[True] * 4, [False] * 4])
def test_all_or_nothing_kept_says_nothing(kept: list[bool]) -> None:
    assert overlap(np.array(kept), np.arange(4.0)) is None
    assert average_precision(np.array(kept), np.arange(4.0)) is None


@given(KEPT_AND_SCORES)
def test_average_precision_is_scikit_learns(rows: list[tuple[bool, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    kept, scores = (np.array(column) for column in zip(*rows, strict=True))
    assert average_precision(kept, scores) == pytest.approx(
        metrics.average_precision_score(kept, scores)
    )


@given(KEPT_AND_SCORES)
def test_overlap_depends_on_the_order_of_the_scores_alone(rows: list[tuple[bool, int]]) -> None:
    kept, scores = (np.array(column) for column in zip(*rows, strict=True))
    assume(len(set(scores.tolist())) == len(scores))
    found = overlap(kept, scores)
    assert found == overlap(kept, scores.astype(float) ** 3 - 5)
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[: int(kept.sum())]
    assert found == pytest.approx(np.mean([kept[i] for i in best]))
