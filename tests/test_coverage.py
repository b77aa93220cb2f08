from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.paths import resource_dir
from benchmarks.statistics.coverage import NOMINAL, Coverage, as_markdown, scenarios, simulate

if TYPE_CHECKING:
    from benchmarks.statistics.coverage import Scenario

SCENARIOS = {scenario.name: scenario for scenario in scenarios()}
# Percentile bootstrap and Wilson are approximate, skewed and disturbed data break the model: a
# nominal 95 % may be 93 to 97 % there.
SLACK = 0.02


@pytest.mark.parametrize(
    "scenario", [s for s in SCENARIOS.values() if s.used], ids=lambda s: s.name
)
def test_small_run_covers_what_it_claims(scenario: Scenario) -> None:
    result = simulate(scenario, 400 if scenario.cost == 1 else 200)
    assert abs(result.covered - NOMINAL) < SLACK + 4 * result.monte_carlo_error
    assert result.mean_width > 0


def test_simulation_can_fail_a_method() -> None:
    (bad,) = (s for s in SCENARIOS.values() if not s.used)
    result = simulate(bad, 400)
    assert result.covered + 4 * result.monte_carlo_error < NOMINAL - SLACK


def test_same_scenario_gives_the_same_result() -> None:
    scenario = SCENARIOS["3 seeds, normal differences"]
    assert simulate(scenario, 50) == simulate(scenario, 50)


def committed() -> list[Coverage]:
    path = resource_dir("reference") / "coverage.json"
    return [Coverage(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def test_committed_result_is_of_these_scenarios_and_its_table_fits() -> None:
    rows = committed()
    assert [(row.name, row.method, row.n) for row in rows] == [
        (s.name, s.method, s.n) for s in SCENARIOS.values()
    ]
    table = (resource_dir("reference") / "coverage.md").read_text(encoding="utf-8")
    assert table == as_markdown(rows)


def test_committed_result_shows_coverage_of_everything_used() -> None:
    for row in committed():
        assert row.trials >= 8000
        if row.used:
            assert abs(row.covered - NOMINAL) < SLACK, row.name
        else:
            assert row.covered < 0.8


def test_committed_result_can_be_repeated() -> None:
    row = next(row for row in committed() if row.method == "wilson")
    assert simulate(SCENARIOS[row.name], row.trials) == row
