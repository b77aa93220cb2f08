"""The intervals this suite uses, each only at an n where a simulation shows what it covers.

The simulation is `coverage.py` beside this file; its result is `reports/reference/coverage.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike

MIN_SEEDS = 2
MIN_PROCESSES = 3
MIN_RANKED = 10


@dataclass(frozen=True)
class Interval:
    """An estimate and its two-sided interval.

    Attributes:
        estimate: the point estimate; always inside the interval.
        low: lower end.
        high: upper end.
        method: wilson, paired_bootstrap, paired_adjusted_wald, paired_t, log_ratio_t,
            paired_log_ratio_t or spearman_normal.
        confidence: nominal level, e.g. 0.95.
        n: how many units it rests on (examples, seeds or processes).
    """

    estimate: float
    low: float
    high: float
    method: str
    confidence: float
    n: int


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a proportion (Wilson 1927), for the accuracy of one run.

    Args:
        successes: correct predictions, 0 to n.
        n: predictions; at least 1.
        confidence: nominal level between 0 and 1.

    Raises:
        ValueError: for counts or a level out of range.
    """
    _check_level(confidence)
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n and n >= 1; got {successes} of {n}")
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    share = successes / n
    # at 0 and n successes the closed form misses 0 and 1 by a rounding error
    return Interval(share, min(float(low), share), max(float(high), share), "wilson", confidence, n)


def paired_bootstrap(
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Interval:
    """Percentile bootstrap over examples of the accuracy difference a - b.

    The two models saw the same examples, so an example is resampled with both its answers. The
    difference of one example is -1, 0 or 1, hence a resample is one multinomial draw of three
    counts: exact, and as fast for 1,000,000 examples as for 10.

    Says how far the *test set* could have moved the difference, with the weights held fixed; it
    says nothing about other seeds. If the models never disagree the interval is the single
    value 0: resampling cannot show a difference it never saw.

    Args:
        correct_a: [n] booleans, whether model a was right on each example.
        correct_b: [n] booleans of model b, on the same examples in the same order.
        confidence: nominal level between 0 and 1.
        resamples: number of bootstrap draws.
        seed: a seed or a generator, which is advanced.

    Raises:
        ValueError: for empty or unequal lengths, answers other than 0 and 1, or a bad level.
    """
    import numpy as np

    _check_level(confidence)
    wins, losses, n = _disagreements(correct_a, correct_b)
    estimate = (wins - losses) / n
    shares = [wins / n, losses / n, (n - wins - losses) / n]
    draws = np.random.default_rng(seed).multinomial(n, shares, size=resamples)
    spread = (draws[:, 0] - draws[:, 1]) / n
    tail = (1 - confidence) / 2
    low, high = np.quantile(spread, [tail, 1 - tail])
    return Interval(
        estimate,
        min(float(low), estimate),
        max(float(high), estimate),
        "paired_bootstrap",
        confidence,
        n,
    )


def paired_adjusted_wald(
    correct_a: ArrayLike, correct_b: ArrayLike, confidence: float = 0.95
) -> Interval:
    """Adjusted Wald interval over examples of the accuracy difference a - b (Bonett and Price 2012).

    Adds one example that only a, and one that only b, gets right. For two models that may hardly
    disagree, or on few hundred examples: there the bootstrap covers too little, down to 0 where
    they never disagree, and this covers more than it claims. As the bootstrap, it holds the
    weights fixed.

    Args:
        correct_a: [n] booleans, whether model a was right on each example.
        correct_b: [n] booleans of model b, on the same examples in the same order.
        confidence: nominal level between 0 and 1.

    Raises:
        ValueError: for empty or unequal lengths, answers other than 0 and 1, or a bad level.
    """
    _check_level(confidence)
    wins, losses, n = _disagreements(correct_a, correct_b)
    from scipy import stats

    only_a, only_b = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    middle = only_a - only_b
    half = float(stats.norm.ppf((1 + confidence) / 2))
    half *= math.sqrt((only_a + only_b - middle**2) / (n + 2))
    estimate = (wins - losses) / n
    # the middle is drawn towards 0, at very few examples past the estimate
    low, high = max(-1.0, min(middle - half, estimate)), min(1.0, max(middle + half, estimate))
    return Interval(estimate, low, high, "paired_adjusted_wald", confidence, n)


def paired_t(differences: Sequence[float], confidence: float = 0.95) -> Interval:
    """Student's t interval of a mean difference, paired over seeds.

    With 3 seeds the half-width is 2.48 standard deviations of the differences. Identical
    differences give an interval of no width: right for what is deterministic (parameters, MACs
    at a fixed k), luck for anything measured.

    Args:
        differences: one candidate-minus-baseline difference per seed; at least 2.
        confidence: nominal level between 0 and 1.

    Raises:
        ValueError: for fewer than 2 differences, a number that is not finite, or a bad level.
    """
    mean, half = _t_half_width(differences, confidence, MIN_SEEDS, "paired t", "seeds")
    return Interval(mean, mean - half, mean + half, "paired_t", confidence, len(differences))


def log_ratio_t(process_means_of_log_ratio: Sequence[float], confidence: float = 0.95) -> Interval:
    """Student's t interval of a ratio, from one mean log ratio per process.

    The process is the unit: repetitions inside one process share its memory layout and clocks, so
    they are averaged before and never counted. The estimate is the geometric mean of the ratios.

    Args:
        process_means_of_log_ratio: mean of log(time of baseline / time of candidate) in each
            process; at least 3.
        confidence: nominal level between 0 and 1.

    Returns:
        An interval on the scale of the ratio (1 = no difference).

    Raises:
        ValueError: for fewer than 3 processes, a number that is not finite, or a bad level.
    """
    mean, half = _t_half_width(
        process_means_of_log_ratio, confidence, MIN_PROCESSES, "log-ratio t", "processes"
    )
    n = len(process_means_of_log_ratio)
    return _from_log(mean, half, "log_ratio_t", confidence, n)


def paired_log_ratio_t(log_ratios: Sequence[float], confidence: float = 0.95) -> Interval:
    """Student's t interval of a ratio paired over seeds (e.g. MACs of candidate over baseline).

    As `log_ratio_t`, but the unit is the seed and 2 are enough; identical ratios give an
    interval of no width.

    Raises:
        ValueError: for fewer than 2 seeds, a number that is not finite, or a bad level.
    """
    mean, half = _t_half_width(log_ratios, confidence, MIN_SEEDS, "paired log-ratio t", "seeds")
    return _from_log(mean, half, "paired_log_ratio_t", confidence, len(log_ratios))


def spearman_normal(correlation: float, n: int, confidence: float = 0.95) -> Interval:
    """Interval over inputs of one Spearman correlation (Bonett and Wright 2000).

    Fisher's z with the variance (1 + r^2 / 2) / (n - 3), which ranks need.

    Args:
        correlation: in [-1, 1].
        n: inputs; at least 10.
        confidence: nominal level between 0 and 1.

    Raises:
        ValueError: for a correlation, n or level out of range.
    """
    _check_level(confidence)
    if n < MIN_RANKED or not -1 <= correlation <= 1:
        raise ValueError(f"needs -1 <= r <= 1 and n >= {MIN_RANKED}; got {correlation} of {n}")
    if abs(correlation) == 1:
        low = high = correlation
    else:
        from scipy import stats

        z = math.atanh(correlation)
        half = float(stats.norm.ppf((1 + confidence) / 2))
        half *= math.sqrt((1 + correlation**2 / 2) / (n - 3))
        low, high = math.tanh(z - half), math.tanh(z + half)
    return Interval(correlation, low, high, "spearman_normal", confidence, n)


def _disagreements(correct_a: ArrayLike, correct_b: ArrayLike) -> tuple[int, int, int]:
    """Examples that only a, and only b, got right, and how many there are."""
    import numpy as np

    a, b = np.asarray(correct_a), np.asarray(correct_b)
    if a.ndim != 1 or a.shape != b.shape or a.size == 0:
        raise ValueError(
            f"paired answers must be two equal, non-empty rows; got {a.shape}, {b.shape}"
        )
    if not (np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all()):
        raise ValueError("answers must be booleans or 0 and 1")
    difference = a.astype(np.int64) - b.astype(np.int64)
    return int((difference == 1).sum()), int((difference == -1).sum()), a.size


def _t_half_width(
    values: Sequence[float], confidence: float, least: int, what: str, units: str
) -> tuple[float, float]:
    _check_level(confidence)
    if len(values) < least:
        raise ValueError(f"{what} needs at least {least} {units}; got {len(values)}")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"{what} needs finite numbers; got {list(values)}")
    if len(set(values)) == 1:
        return float(values[0]), 0.0
    import numpy as np
    from scipy import stats

    mean = math.fsum(values) / len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, error * float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))


def _from_log(mean: float, half: float, method: str, confidence: float, n: int) -> Interval:
    return Interval(
        math.exp(mean), math.exp(mean - half), math.exp(mean + half), method, confidence, n
    )


def _check_level(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence}")
