"""What the intervals really cover at the n used here: a simulation whose result is committed.

`python -m benchmarks.statistics.coverage` writes `reports/reference/coverage.json` and
`coverage.md`. Each scenario draws data from a known truth, asks the interval function that the
suite itself uses, and counts how often the truth lies inside. One scenario is a method that is
*not* used here (a percentile bootstrap over 3 seeds); it shows that the simulation can fail one.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.paths import resource_dir
from benchmarks.statistics.intervals import (
    Interval,
    log_ratio_t,
    paired_adjusted_wald,
    paired_bootstrap,
    paired_log_ratio_t,
    paired_t,
    spearman_normal,
    wilson,
)
from benchmarks.statistics.rank import over_layers, rank_partial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np

NOMINAL = 0.95
TEST_SIZES = {"R8": 2189, "Rotten Tomatoes": 1706, "STS-B": 1379}
ROOT_SEED = 20260


@dataclass(frozen=True)
class Scenario:
    """A truth, and one way of drawing data from it and making an interval of them.

    Attributes:
        name: short and unique; also seeds the scenario's generator.
        method: the interval's name.
        n: units in one data set.
        truth: the value that the interval should cover.
        draw: draws one data set and returns its interval.
        cost: how many times dearer one trial is than the cheapest scenario's.
        used: whether the suite uses this method at this n.
    """

    name: str
    method: str
    n: int
    truth: float
    draw: Callable[[np.random.Generator], Interval]
    cost: int = 1
    used: bool = True


@dataclass(frozen=True)
class Coverage:
    """What one scenario's intervals did.

    Attributes:
        covered: share of trials whose interval held the truth.
        monte_carlo_error: standard error of `covered`.
        below, above: share of trials whose interval lay wholly below or above the truth.
        mean_width: on the scale of the estimate.
    """

    name: str
    method: str
    n: int
    used: bool
    trials: int
    nominal: float
    covered: float
    monte_carlo_error: float
    below: float
    above: float
    mean_width: float


def simulate(scenario: Scenario, trials: int) -> Coverage:
    """Runs one scenario `trials` times; the same scenario and count give the same result."""
    import numpy as np

    rng = np.random.default_rng([ROOT_SEED, zlib.crc32(scenario.name.encode())])
    below = above = 0
    width = 0.0
    for _ in range(trials):
        interval = scenario.draw(rng)
        below += interval.high < scenario.truth
        above += interval.low > scenario.truth
        width += interval.high - interval.low
    covered = 1 - (below + above) / trials
    return Coverage(
        name=scenario.name,
        method=scenario.method,
        n=scenario.n,
        used=scenario.used,
        trials=trials,
        nominal=NOMINAL,
        covered=covered,
        monte_carlo_error=math.sqrt(covered * (1 - covered) / trials),
        below=below / trials,
        above=above / trials,
        mean_width=width / trials,
    )


def scenarios() -> list[Scenario]:
    """Every scenario, in the order of the table."""
    return [
        *_accuracies(),
        *_differences(),
        *_deletions(),
        *_seeds(),
        *_processes(),
        *_ranks(),
        *_layers(),
        _bad(),
    ]


def _accuracies() -> list[Scenario]:
    levels = {
        "R8": (0.90, 0.93, 0.95, 0.97),
        "Rotten Tomatoes": (0.50, 0.68, 0.72, 0.80),
        "STS-B": (0.55,),
    }

    def scenario(data: str, accuracy: float) -> Scenario:
        n = TEST_SIZES[data]

        def draw(rng: np.random.Generator) -> Interval:
            return _wilson(int(rng.binomial(n, accuracy)), n)

        return Scenario(f"one run, {data}, accuracy {accuracy:.2f}", "wilson", n, accuracy, draw)

    return [scenario(data, level) for data, row in levels.items() for level in row]


@cache
def _wilson(successes: int, n: int) -> Interval:
    return wilson(successes, n, NOMINAL)


def _differences() -> list[Scenario]:
    """Shares of examples that only model a, and only model b, gets right."""
    disagreements = {
        "R8": ((0.015, 0.015), (0.020, 0.012), (0.004, 0.004), (0.030, 0.005)),
        "Rotten Tomatoes": ((0.09, 0.09), (0.10, 0.08), (0.13, 0.07)),
        "STS-B": ((0.14, 0.12),),
    }

    def scenario(data: str, only_a: float, only_b: float) -> Scenario:
        n = TEST_SIZES[data]

        def draw(rng: np.random.Generator) -> Interval:
            cell = rng.random(n)
            both = cell >= only_a + only_b
            return paired_bootstrap(
                both | (cell < only_a), both | (cell >= only_a), NOMINAL, 2000, rng
            )

        name = f"two models, {data}, disagree on {only_a:.1%} / {only_b:.1%}"
        return Scenario(name, "paired_bootstrap", n, only_a - only_b, draw, cost=5)

    return [scenario(data, a, b) for data, row in disagreements.items() for a, b in row]


def _deletions() -> list[Scenario]:
    """Shares of validation examples that only the whole model, and only the cut one, gets right."""
    disagreements = {
        500: ((0.03, 0.02), (0.10, 0.02), (0.30, 0.02)),
        2000: ((0.004, 0.004), (0.03, 0.02), (0.60, 0.01)),
    }

    def scenario(n: int, only_a: float, only_b: float) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            cell = rng.random(n)
            both = cell >= only_a + only_b
            return paired_adjusted_wald(both | (cell < only_a), both | (cell >= only_a), NOMINAL)

        name = f"a model without a layer, {n} inputs, disagree on {only_a:.1%} / {only_b:.1%}"
        return Scenario(name, "paired_adjusted_wald", n, only_a - only_b, draw, cost=5)

    return [scenario(n, a, b) for n, row in disagreements.items() for a, b in row]


def _seeds() -> list[Scenario]:
    truth, spread = -0.003, 0.008

    def normal(rng: np.random.Generator, n: int) -> Sequence[float]:
        return [float(value) for value in rng.normal(0, 1, n)]

    def skewed(rng: np.random.Generator, n: int) -> Sequence[float]:
        # gamma of shape 4: skewness 1, mean and variance removed; now and then a bad seed
        return [float(4 - value) / 2 for value in rng.gamma(4, 1, n)]

    def heavy(rng: np.random.Generator, n: int) -> Sequence[float]:
        return [float(value) / math.sqrt(5 / 3) for value in rng.standard_t(5, n)]

    shapes = {"normal": normal, "skewed": skewed, "heavy-tailed": heavy}

    def scenario(shape: str, n: int) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            return paired_t([truth + spread * x for x in shapes[shape](rng, n)], NOMINAL)

        return Scenario(f"{n} seeds, {shape} differences", "paired_t", n, truth, draw)

    def macs(n: int) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            return paired_log_ratio_t([math.log(0.8) + 0.05 * x for x in normal(rng, n)], NOMINAL)

        return Scenario(f"{n} seeds, MACs ratio 0.8", "paired_log_ratio_t", n, 0.8, draw)

    return [*(scenario(shape, n) for n in (2, 3, 5) for shape in shapes), macs(2), macs(3)]


def _processes() -> list[Scenario]:
    speedup, between, within, repeats = 1.2, 0.015, 0.05, 20

    def scenario(text: str, n: int, disturbed: float, one_sided: bool) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            means = math.log(speedup) + rng.normal(0, between, n)
            means += rng.normal(0, within / math.sqrt(repeats), n)
            hit = rng.random(n) < disturbed
            sign = 1.0 if one_sided else rng.choice([-1.0, 1.0], n)
            means += hit * sign * rng.exponential(0.05, n)
            return log_ratio_t([float(mean) for mean in means], NOMINAL)

        return Scenario(f"{n} processes, {text}", "log_ratio_t", n, speedup, draw)

    return [
        scenario("quiet", 3, 0.0, one_sided=False),
        scenario("5 % of processes disturbed", 3, 0.05, one_sided=False),
        scenario("20 % of processes disturbed", 3, 0.20, one_sided=False),
        scenario("20 % disturbed, always in one's favour", 3, 0.20, one_sided=True),
        scenario("quiet", 5, 0.0, one_sided=False),
        scenario("20 % of processes disturbed", 5, 0.20, one_sided=False),
    ]


def _ranks() -> list[Scenario]:
    """Rank correlations of two normal measures, the second as it is or in whole numbers."""
    n = TEST_SIZES["STS-B"]

    def scenario(pearson: float, *, counted: bool) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            from scipy import stats

            x, y = rng.multivariate_normal([0, 0], [[1, pearson], [pearson, 1]], n).T
            if counted:
                y = y.clip(0.5).round()
            return spearman_normal(float(stats.spearmanr(x, y).statistic), n, NOMINAL)

        what = "the other a count, mostly 0" if counted else "both continuous"
        truth = counted_truth(pearson) if counted else 6 / math.pi * math.asin(pearson / 2)
        name = f"rank correlation over inputs, Pearson {pearson:.1f}, {what}"
        return Scenario(name, "spearman_normal", n, truth, draw, cost=5)

    return [scenario(r, counted=c) for c in (False, True) for r in (0.0, 0.3, 0.6)]


def counted_truth(pearson: float) -> float:
    """Spearman's correlation in the limit, of normal x and of the normal y rounded from 0.5 up.

    The correlation of x's distribution function with y's mid-distribution function, by integration.
    """
    import itertools

    from scipy import integrate, stats

    # round() takes 0.5 to 0, so that what is not above 0.5 counts as 0
    edges = [-math.inf, 0.5, 1.5, 2.5, 3.5, 4.5, math.inf]
    covariance = variance = 0.0
    for low, high in itertools.pairwise(edges):
        below, upto = stats.norm.cdf(low), stats.norm.cdf(high)
        middle = (below + upto) / 2 - 0.5

        def mean_rank(y: float) -> float:
            # of x, for one y: x has mean r y and variance 1 - r^2 there
            rank = stats.norm.cdf(pearson * y / math.sqrt(2 - pearson**2)) - 0.5
            return float(rank * stats.norm.pdf(y))

        covariance += middle * integrate.quad(mean_rank, max(low, -9.0), min(high, 9.0))[0]
        variance += middle**2 * (upto - below)
    return float(covariance / math.sqrt(variance / 12))


def _layers() -> list[Scenario]:
    """Rank correlations over the layers of a model, one for each of three seeds."""

    def scenario(layers: int, pearson: float) -> Scenario:
        def draw(rng: np.random.Generator) -> Interval:
            covariance = [[1, pearson], [pearson, 1]]
            seeds = rng.multivariate_normal([0, 0], covariance, (3, layers))
            rhos = [rank_partial(x, y) for x, y in seeds.transpose(0, 2, 1)]
            return over_layers([rho for rho in rhos if rho is not None], layers)

        # the mean over seeds of so few layers, which lies below the limit (Moran 1948)
        limit = math.asin(pearson) + (layers - 2) * math.asin(pearson / 2)
        truth = 6 / (math.pi * (layers + 1)) * limit
        name = f"3 seeds, rank correlation over {layers} layers, Pearson {pearson}"
        return Scenario(name, "fisher_z_t", 3, truth, draw, cost=5)

    return [scenario(n, r) for n in (6, 8, 12) for r in (0.0, 0.5, 0.8)]


def _bad() -> Scenario:
    def draw(rng: np.random.Generator) -> Interval:
        return percentile_over_seeds([float(value) for value in rng.normal(0, 1, 3)])

    name = "3 seeds, normal differences, percentile bootstrap"
    return Scenario(name, "percentile (not used)", 3, 0.0, draw, cost=5, used=False)


def percentile_over_seeds(values: Sequence[float]) -> Interval:
    """The percentile bootstrap of a mean over few seeds: the method that this suite refuses."""
    import itertools

    import numpy as np

    means = [math.fsum(row) / len(row) for row in itertools.product(values, repeat=len(values))]
    tail = (1 - NOMINAL) / 2
    low, high = np.quantile(means, [tail, 1 - tail], method="inverted_cdf")
    mean = math.fsum(values) / len(values)
    return Interval(mean, float(low), float(high), "percentile", NOMINAL, len(values))


def as_markdown(rows: Sequence[Coverage]) -> str:
    """The committed table."""
    from tabulate import tabulate

    table = tabulate(
        [
            [
                row.name,
                row.method,
                row.n,
                f"{row.nominal:.3f}",
                f"{row.covered:.4f}",
                f"{row.monte_carlo_error:.4f}",
                f"{row.below:.3f} / {row.above:.3f}",
                f"{row.mean_width:.4f}",
            ]
            for row in rows
        ],
        headers=[
            "scenario",
            "method",
            "n",
            "nominal",
            "covered",
            "Monte-Carlo error",
            "missed below / above",
            "mean width",
        ],
        tablefmt="github",
        disable_numparse=True,
    )
    return _PREFACE + table + "\n"


_PREFACE = """# What the intervals cover

Written by `python -m benchmarks.statistics.coverage`; do not edit. *Covered* is the share of
simulated data sets whose nominal 95 % interval held the truth, *Monte-Carlo error* its standard
error, *mean width* is on the scale of the estimate (a fraction of examples, or a ratio).

- One run, and two models on one test set: n is the size of the real test set. These intervals speak
  of the test set with the weights held fixed, not of other seeds.
- A model without a layer: as two models, on the few inputs of a validation split. Where the two hardly
  disagree this interval covers more than it claims (not shown: 100 % at 500 inputs of which the two
  models differ on one, where the bootstrap covers 59 %).
- Seeds: the differences' standard deviation is 0.8 points. Three seeds cover what they should, at
  the price of a width of 3.5 points: most differences stay undecided, rightly. Two seeds give 11
  points. Skewed differences (skewness 1) cost one to two points of coverage.
- Processes: their ratios' standard deviation is 1.5 %; a disturbance shifts one by 5 % on average.
  It widens the interval more than it costs coverage; one that hits all processes alike is bias,
  which no interval over processes sees: hence the alternating order inside each.
- Rank correlations: n is the size of a real test set. Over seeds, correlations get a paired t interval,
  as accuracies do. Over the few layers of a
  model Student's t is taken on Fisher's z; it covers the mean over seeds of so many layers, and is wide.
  Where a correlation over six layers is above 0.9, seeds often agree on the same order, and 88 % are
  covered (not shown).
- The last row is a method that is **not used here**; it shows that the simulation can fail one.

"""


def main() -> None:
    """Runs all scenarios and writes both files."""
    folder = resource_dir("reference")
    rows = [simulate(scenario, 40_000 // scenario.cost) for scenario in scenarios()]
    write(rows, folder)


def write(rows: Sequence[Coverage], folder: Path) -> None:
    """Writes `coverage.json` and `coverage.md` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(row) for row in rows], indent=1) + "\n"
    (folder / "coverage.json").write_text(text, encoding="utf-8")
    (folder / "coverage.md").write_text(as_markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
