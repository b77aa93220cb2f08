from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statistics.intervals import (
    Interval,
    log_ratio_t,
    paired_adjusted_wald,
    paired_bootstrap,
    paired_log_ratio_t,
    paired_t,
    wilson,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = st.sampled_from([(0.5, 0.8), (0.8, 0.95), (0.95, 0.99)])
NUMBERS = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=3, max_size=8)
ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)
OVER_UNITS = [paired_t, log_ratio_t, paired_log_ratio_t]


def check_order(inner: Interval, outer: Interval) -> None:
    """Both hold the estimate, and the higher level's interval holds the lower one's."""
    for interval in (inner, outer):
        assert interval.low <= interval.estimate <= interval.high
    assert outer.low <= inner.low
    assert inner.high <= outer.high
    assert inner.estimate == outer.estimate


@given(st.integers(1, 3000), st.floats(0, 1), LEVELS)
def test_wilson_is_ordered_and_symmetric(n: int, share: float, levels: tuple[float, float]) -> None:
    right = round(share * n)
    inner, outer = (wilson(right, n, level) for level in levels)
    check_order(inner, outer)
    assert outer.low >= 0
    assert outer.high <= 1
    swapped = wilson(n - right, n, levels[0])
    assert inner.low == pytest.approx(1 - swapped.high, abs=1e-12)


def test_wilson_known_value() -> None:
    # 81 of 263: the worked example of Newcombe (1998), 0.2553 to 0.3662
    interval = wilson(81, 263)
    assert (interval.low, interval.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert (interval.method, interval.n, interval.confidence) == ("wilson", 263, 0.95)


@given(ANSWERS, LEVELS, st.integers(0, 99))
def test_bootstrap_is_ordered(
    pairs: list[tuple[bool, bool]], levels: tuple[float, float], seed: int
) -> None:
    a, b = zip(*pairs, strict=True)
    inner, outer = (paired_bootstrap(a, b, level, 500, seed) for level in levels)
    check_order(inner, outer)
    assert inner.estimate == pytest.approx((sum(a) - sum(b)) / len(pairs))
    assert inner == paired_bootstrap(a, b, levels[0], 500, seed)


@given(ANSWERS, LEVELS)
def test_adjusted_wald_is_ordered_and_mirrored(
    pairs: list[tuple[bool, bool]], levels: tuple[float, float]
) -> None:
    a, b = zip(*pairs, strict=True)
    inner, outer = (paired_adjusted_wald(a, b, level) for level in levels)
    check_order(inner, outer)
    assert -1 <= outer.low < outer.high <= 1
    assert inner.estimate == pytest.approx((sum(a) - sum(b)) / len(pairs))
    swapped = paired_adjusted_wald(b, a, levels[0])
    assert (swapped.low, swapped.high) == pytest.approx((-inner.high, -inner.low), abs=1e-12)


def test_adjusted_wald_by_hand_and_beside_the_bootstrap() -> None:
    wins, losses, n = 12, 4, 100
    a = np.array([1] * wins + [0] * losses + [1] * (n - wins - losses))
    b = np.array([0] * wins + [1] * losses + [1] * (n - wins - losses))
    interval = paired_adjusted_wald(a, b)
    half = 1.959964 * math.sqrt((13 / 102 + 5 / 102 - (8 / 102) ** 2) / 102)
    assert interval.estimate == 0.08
    assert (interval.low, interval.high) == pytest.approx((8 / 102 - half, 8 / 102 + half))
    more = [np.tile(answers, 20) for answers in (a, b)]
    ours, other = paired_adjusted_wald(*more), paired_bootstrap(*more)
    assert (ours.low, ours.high) == pytest.approx((other.low, other.high), abs=0.001)


def test_adjusted_wald_has_width_where_the_models_never_disagree() -> None:
    same = np.ones(200, bool)
    interval = paired_adjusted_wald(same, same)
    assert interval.low == pytest.approx(-interval.high)
    assert 0.005 < interval.high < 0.02


def test_bootstrap_swap_mirrors() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(1700) < 0.75, rng.random(1700) < 0.70
    ours, swapped = paired_bootstrap(a, b, seed=1), paired_bootstrap(b, a, seed=2)
    assert ours.estimate == -swapped.estimate
    assert (ours.low, ours.high) == pytest.approx((-swapped.high, -swapped.low), abs=0.002)


def test_bootstrap_agrees_with_the_normal_approximation() -> None:
    wins, losses, n = 120, 80, 1700
    a = np.array([1] * wins + [0] * losses + [1] * (n - wins - losses))
    b = np.array([0] * wins + [1] * losses + [1] * (n - wins - losses))
    difference = a - b
    half = 1.96 * difference.std() / math.sqrt(n)
    interval = paired_bootstrap(a, b, resamples=40_000)
    assert interval.low == pytest.approx(interval.estimate - half, abs=0.001)
    assert interval.high == pytest.approx(interval.estimate + half, abs=0.001)


def test_bootstrap_uses_the_generator_it_is_given_and_no_other() -> None:
    a, b = [True, False] * 100, [True, True] * 100
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    state = str(np.random.get_state())  # noqa: NPY002 - shows that the global one is left alone
    for _ in range(2):
        ours, theirs = (paired_bootstrap(a, b, 0.95, 99, rng) for rng in (first, second))
        assert ours == theirs
    assert len({paired_bootstrap(a, b, 0.95, 99, seed).low for seed in range(20)}) > 1
    assert state == str(np.random.get_state())  # noqa: NPY002


def test_bootstrap_of_models_that_never_disagree_is_zero() -> None:
    interval = paired_bootstrap([1, 0, 1], [1, 0, 1])
    assert (interval.low, interval.estimate, interval.high) == (0, 0, 0)


@pytest.mark.parametrize("method", OVER_UNITS)
@given(values=NUMBERS, levels=LEVELS)
def test_t_is_ordered_and_swap_mirrors(
    method: Callable[..., Interval], values: list[float], levels: tuple[float, float]
) -> None:
    inner, outer = (method(values, level) for level in levels)
    check_order(inner, outer)
    swapped = method([-value for value in values], levels[0])
    if method is paired_t:
        assert swapped.low == pytest.approx(-inner.high, abs=1e-9)
    elif inner.high < 1e100:
        assert swapped.low == pytest.approx(1 / inner.high, rel=1e-6)


def test_paired_t_with_three_seeds_is_two_and_a_half_deviations_wide() -> None:
    values = [0.01, 0.02, -0.01]
    interval = paired_t(values)
    half = 4.30265 / math.sqrt(3) * statistics.stdev(values)
    assert interval.high - interval.estimate == pytest.approx(half, rel=1e-5)
    assert half / statistics.stdev(values) == pytest.approx(2.48, abs=0.01)


@pytest.mark.parametrize("method", OVER_UNITS)
def test_identical_values_give_no_width(method: Callable[..., Interval]) -> None:
    interval = method([0.1, 0.1, 0.1])
    assert interval.low == interval.estimate == interval.high


def test_log_ratio_is_on_the_scale_of_the_ratio() -> None:
    interval = log_ratio_t([math.log(1.1), math.log(1.2), math.log(1.3)])
    assert interval.estimate == pytest.approx((1.1 * 1.2 * 1.3) ** (1 / 3))
    assert interval.low < 1.1
    assert interval.high > 1.3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_ratio_t([0.1, 0.2]), "at least 3 processes; got 2"),
        (lambda: paired_t([0.1]), "at least 2 seeds; got 1"),
        (lambda: paired_t([0.1, math.nan]), "finite"),
        (lambda: paired_t([0.1, 0.2], 95), "between 0 and 1; got 95"),
        (lambda: wilson(3, 2), "3 of 2"),
        (lambda: wilson(0, 0), "0 of 0"),
        (lambda: paired_bootstrap([1, 0], [1]), "equal"),
        (lambda: paired_bootstrap([], []), "non-empty"),
        (lambda: paired_bootstrap([2], [1]), "0 and 1"),
    ],
)
def test_wrong_input_is_refused(call: Callable[[], Interval], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
