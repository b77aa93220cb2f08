from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.rank import rank_partial

numbers = st.integers(-20, 20).map(float)


def columns(n: int, width: int) -> st.SearchStrategy[list[list[float]]]:
    column = st.lists(numbers, min_size=n, max_size=n)
    return st.lists(column, min_size=width, max_size=width)


def by_regression(x: Any, y: Any, given: list[Any]) -> float:
    """The correlation of the residuals of two regressions of ranks, by statsmodels."""
    ranks = [stats.rankdata(values) for values in (x, y, *given)]
    fixed = sm.add_constant(np.column_stack(ranks[2:]))
    left = [sm.OLS(rank, fixed).fit().resid for rank in ranks[:2]]
    return float(np.corrcoef(*left)[0, 1])


@given(columns(8, 2))
def test_without_others_it_is_spearman(data: list[list[float]]) -> None:
    x, y = data
    found = rank_partial(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(x, y).statistic)


@given(columns(8, 3))
def test_one_other_as_by_the_formula_of_partial_correlations(data: list[list[float]]) -> None:
    x, y, z = data
    found = rank_partial(x, y, [z])
    assume(found is not None and len(set(z)) > 1)
    xy, xz, yz = (stats.spearmanr(a, b).statistic for a, b in ((x, y), (x, z), (y, z)))
    assert found == pytest.approx((xy - xz * yz) / ((1 - xz**2) * (1 - yz**2)) ** 0.5, abs=1e-6)


@given(columns(9, 4))
def test_two_others_as_by_regression(data: list[list[float]]) -> None:
    x, y, *others = data
    found = rank_partial(x, y, others)
    fixed = np.column_stack([np.ones(9), *map(stats.rankdata, others)])
    assume(found is not None and np.linalg.matrix_rank(fixed) == 3)
    assert found == pytest.approx(by_regression(x, y, others), abs=1e-6)


@given(columns(8, 3))
def test_it_is_symmetric_and_sees_order_alone(data: list[list[float]]) -> None:
    x, y, z = data
    found = rank_partial(x, y, [z])
    assume(found is not None)
    assert -1 <= found <= 1
    assert rank_partial(y, x, [z]) == pytest.approx(found, abs=1e-9)
    assert rank_partial(np.exp(np.asarray(x) / 9), y, [[v**3 for v in z]]) == pytest.approx(found)
    assert rank_partial([-v for v in x], y, [z]) == pytest.approx(-found, abs=1e-9)


@given(columns(8, 2))
def test_what_the_others_determine_correlates_with_nothing(data: list[list[float]]) -> None:
    x, y = data
    assert rank_partial(x, y, [x]) is None
    assert rank_partial(x, y, [y]) is None


def test_depth_alone_explains_what_looks_like_sparsity() -> None:
    depth = np.arange(12.0)
    noise = np.random.default_rng(0).normal(size=(2, 12))
    sparsity, lost = depth + 2 * noise[0], -depth + 2 * noise[1]
    plain, held = rank_partial(sparsity, lost), rank_partial(sparsity, lost, [depth])
    assert plain is not None
    assert held is not None
    assert plain < -0.6 < held


@pytest.mark.parametrize(
    ("n", "others", "enough"), [(4, 0, True), (3, 0, False), (5, 1, True), (5, 2, False)]
)
def test_too_few_layers_say_nothing(n: int, others: int, enough: bool) -> None:
    rng = np.random.default_rng(1)
    x, y, *rest = rng.normal(size=(2 + others, n))
    assert (rank_partial(x, y, rest) is not None) == enough
