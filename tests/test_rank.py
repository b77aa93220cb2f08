"""Rank correlations against known data, and their interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.coverage import counted_truth
from benchmarks.statistics.intervals import spearman_normal
from benchmarks.statistics.rank import over_layers, over_seeds, partial_spearman, spearman

NUMBERS = st.lists(st.integers(0, 5), min_size=10, max_size=40)


def test_spearman_of_known_data() -> None:
    # ranks of y are 2 1 4 3 6 5 8 7 10 9: ten differences of 1, so 1 - 6 * 10 / (10 * 99)
    y = [2, 1, 4, 3, 6, 5, 8, 7, 10, 9]
    assert spearman(range(10), y) == pytest.approx(1 - 60 / 990)
    assert spearman(range(10), [3**v for v in y]) == pytest.approx(1 - 60 / 990)
    assert spearman(range(10), range(9, -1, -1)) == pytest.approx(-1)


@given(NUMBERS)
def test_ties_get_their_mean_rank(x: list[int]) -> None:
    y = x[::-1]
    found = spearman(x, y)
    if len(set(x)) == 1:
        assert found is None
    else:
        ranks = stats.rankdata(x), stats.rankdata(y)
        assert found == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-9)


def test_few_or_constant_inputs_have_none() -> None:
    assert spearman(range(9), range(9)) is None
    assert spearman([1.0] * 20, range(20)) is None


def test_partial_correlation_takes_a_common_cause_away() -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=5000)
    x, y = (cause + rng.normal(size=5000) for _ in range(2))
    assert spearman(x, y) == pytest.approx(0.48, abs=0.04)
    assert partial_spearman(x, y, cause) == pytest.approx(0, abs=0.04)
    # by regression of the ranks, an independent way
    ranks = [stats.rankdata(v) for v in (x, y, cause)]
    left = [v - np.polyval(np.polyfit(ranks[2], v, 1), ranks[2]) for v in ranks[:2]]
    assert partial_spearman(x, y, cause) == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-6)
    assert partial_spearman(x, y, [1] * 5000) == spearman(x, y)
    assert partial_spearman(x, y, x) is None


def test_interval_is_bonett_and_wrights() -> None:
    found = spearman_normal(0.5, 103)
    half = 1.959964 * math.sqrt((1 + 0.125) / 100)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.5) - half), abs=1e-6)
    assert found.high == pytest.approx(math.tanh(math.atanh(0.5) + half), abs=1e-6)
    assert (found.method, found.n) == ("spearman_normal", 103)
    assert spearman_normal(1.0, 50).low == 1.0


@pytest.mark.parametrize(("correlation", "n"), [(1.1, 50), (0.1, 9), (math.nan, 50)])
def test_interval_refuses_what_it_cannot_judge(correlation: float, n: int) -> None:
    with pytest.raises(ValueError, match="needs"):
        spearman_normal(correlation, n)


def test_seeds_count_once_there_are_two() -> None:
    assert over_seeds([0.3], 1000).method == "spearman_normal"
    found = over_seeds([0.2, 0.3, 0.4], 1000)
    assert (found.method, found.n) == ("paired_t", 3)
    assert found.estimate == pytest.approx(0.3)
    assert found.high - found.low == pytest.approx(2 * 4.3027 * 0.1 / math.sqrt(3), abs=1e-3)
    assert over_seeds([0.9, 0.1], 1000).high == 1.0


def test_truth_of_counts_is_what_a_large_sample_shows() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 200_000).T
    y = y.clip(0.5).round()
    assert counted_truth(0.6) == pytest.approx(stats.spearmanr(x, y).statistic, abs=0.008)
    assert counted_truth(0.0) == pytest.approx(0, abs=1e-9)


def test_over_layers_is_a_t_interval_of_fisher_s_z() -> None:
    rhos = [0.3, 0.6, 0.8]
    z = np.arctanh(rhos)
    half = stats.t.ppf(0.975, 2) * z.std(ddof=1) / math.sqrt(3)
    found = over_layers(rhos, 8)
    assert (found.low, found.estimate, found.high) == pytest.approx(
        tuple(np.tanh([z.mean() - half, z.mean(), z.mean() + half]))
    )
    assert (found.method, found.n) == ("fisher_z_t", 3)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=5), st.integers(4, 12))
def test_over_layers_stays_between_minus_one_and_one(rhos: list[float], layers: int) -> None:
    found = over_layers(rhos, layers)
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    # the mirror image
    mirrored = over_layers([-r for r in rhos], layers)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))
