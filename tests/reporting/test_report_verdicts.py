from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.checking.claim_files import load_claim
from benchmarks.checking.claims import evaluate_claim
from benchmarks.reporting.sections.verdicts import verdicts

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = """
schema = 1
id = "made-up"
title = "A made-up claim"
statement = "It is so."
suite = "suite"
sweep = "main"
baseline = "dense"
candidates = ["budget-low", "random-at-test"]
datasets = ["r8"]
{what}
[source]
paper = "Some paper"
section = "Table 1"
certainty = "none"
[threshold]
direction = "{direction}"
value = {value}
why = "ours"
"""
ACCURACY = 'quantity = "accuracy_difference"\ndecided_by = "paired_t"'
SPEED = 'quantity = "speedup"\nbatch_size = 32\ndecided_by = "log_ratio_t"'


def section(results: Any, folder: Path, what: str, direction: str, value: float) -> str:
    path = folder / "made-up.toml"
    path.write_text(CLAIM.format(what=what, direction=direction, value=value))
    return verdicts([evaluate_claim(load_claim(path), results)])


def row(text: str, candidate: str) -> list[str]:
    line = next(
        x for x in text.splitlines() if x.startswith("| A made-up claim") and candidate in x
    )
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_verdicts_show_estimate_interval_and_threshold_in_points(
    finished: Any, tmp_path: Path
) -> None:
    text = section(finished, tmp_path, ACCURACY, "at least", -0.05)
    _, dataset, _, outcome, estimate, threshold, n = row(text, "budget-low")
    assert (dataset, outcome, threshold, n) == ("r8", "**holds**", "at least -5.0 points", "3")
    assert estimate.count(" points [") == 1
    assert row(text, "random-at-test")[3] == "**refuted**"
    assert "Source: Some paper, Table 1" in text
    assert "seed 0, over examples" in text


def test_speed_is_a_ratio(finished: Any, tmp_path: Path) -> None:
    cells = row(section(finished, tmp_path, SPEED, "above", 1.0), "budget-low")
    assert cells[3:] == ["**holds**", cells[4], "above 1.00x", "3"]
    assert "x [" in cells[4]


def test_one_seed_decides_nothing(made_up: Any, tuning: Any, tmp_path: Path) -> None:
    made_up.write(tuning(keep=lambda w: w.point.seed == 0 and w.meter.name == "accuracy"))
    cells = row(section(made_up.results(), tmp_path, ACCURACY, "at least", -0.05), "budget-low")
    assert cells[3] == "**undecided**"
    assert cells[4].endswith("points single")


@pytest.mark.parametrize(("what", "value"), [(ACCURACY, -0.01), (SPEED, 1.0)])
def test_nothing_measured_is_no_pass(made_up: Any, tmp_path: Path, what: str, value: float) -> None:
    cells = row(section(made_up.results(), tmp_path, what, "at least", value), "budget-low")
    assert cells[3:5] == ["**unmeasured**", "missing"]


def test_a_suite_without_claims_says_so() -> None:
    assert "No claim is decided by this suite" in verdicts([])
