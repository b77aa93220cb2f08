from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.checking.check import CheckResult
from benchmarks.checking.claim_files import load_claim
from benchmarks.checking.claims import evaluate_claim
from benchmarks.cli.check import check
from benchmarks.reporting.sections.caveats import caveats
from benchmarks.reporting.sections.overview import heading
from benchmarks.reporting.sections.verdicts import ROLL_UP, verdicts
from benchmarks.reporting.view import View

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
    return verdicts([evaluate_claim(load_claim(path), results)], View(results))


def row(text: str, candidate: str) -> list[str]:
    line = next(x for x in text.splitlines() if x.startswith("|") and candidate in x)
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_verdicts_show_estimate_interval_and_threshold_in_points(
    finished: Any, tmp_path: Path
) -> None:
    text = section(finished, tmp_path, ACCURACY, "at least", -0.05)
    claim, dataset, _, outcome, estimate, n = row(text, "budget-low")
    assert claim == "A made-up claim: at least -5.0 points, against `dense`"
    assert (dataset, outcome, n) == ("r8", "**holds**", "3")
    assert estimate.count(" points [") == 1
    assert row(text, "random-at-test")[::3] == ["", "**refuted**"]
    assert "r8, `budget-low`: the whole interval is at least -5.0 points (paired_t, n = 3)" in text
    assert "Source: Some paper, Table 1" in text
    assert "seed 0, over examples" in text


def test_speed_is_a_ratio(finished: Any, tmp_path: Path) -> None:
    cells = row(section(finished, tmp_path, SPEED, "above", 1.0), "budget-low")
    assert cells[0] == "A made-up claim: above 1.00x at batch 32, against `dense`"
    assert cells[3:] == ["**holds**", cells[4], "3"]
    assert "x [" in cells[4]


@pytest.mark.parametrize(("size", "marked"), [(32, True), (1, False)])
def test_a_noisy_measurement_marks_the_verdict_that_rests_on_it(
    made_up: Any, tuning: Any, tmp_path: Path, size: int, marked: bool
) -> None:
    warning = f"noisy at batch {size}: IQR/median of the blocks' ratios is 25%"
    made_up.write(
        tuning(warn=lambda _: [warning], keep=lambda w: w.meter.name in {"latency", "accuracy"})
    )
    results = made_up.results()
    (tmp_path / "made-up.toml").write_text(
        CLAIM.format(what=SPEED, direction="above", value=1.0), encoding="utf-8"
    )
    claims = [evaluate_claim(load_claim(tmp_path / "made-up.toml"), results)]
    view = View(results)
    assert row(verdicts(claims, view), "budget-low")[3] == "**holds**" + ", noisy" * marked
    said = '"A made-up claim" are noisy: `budget-low` on r8 (holds; IQR/median of the blocks'
    assert (said in caveats(view, claims)) is marked
    assert ("The claim on time tests batch 32 only." in caveats(view, claims)) is True


def test_what_the_verdicts_rest_on_stands_below_them(finished: Any, tmp_path: Path) -> None:
    text = section(finished, tmp_path, ACCURACY, "at least", -0.05)
    assert "r8 (stand-in for AG News), with models of 2 layers, 8 heads, d_model 64" in text
    assert "0.25 million parameters" in text
    assert "These are 2 verdicts, each at 95 % by itself" in text
    assert ROLL_UP in text


def test_one_seed_decides_nothing(made_up: Any, tuning: Any, tmp_path: Path) -> None:
    made_up.write(tuning(keep=lambda w: w.point.seed == 0 and w.meter.name == "accuracy"))
    cells = row(section(made_up.results(), tmp_path, ACCURACY, "at least", -0.05), "budget-low")
    assert cells[3] == "**undecided**"
    assert cells[4].endswith("points single")


@pytest.mark.parametrize(("what", "value"), [(ACCURACY, -0.01), (SPEED, 1.0)])
def test_nothing_measured_is_no_pass(made_up: Any, tmp_path: Path, what: str, value: float) -> None:
    cells = row(section(made_up.results(), tmp_path, what, "at least", value), "budget-low")
    assert cells[3:5] == ["**unmeasured**", "missing"]
    assert "These are" not in section(made_up.results(), tmp_path, what, "at least", value)


def test_a_suite_without_claims_says_so(finished: Any) -> None:
    assert verdicts([], View(finished)) == ""
    assert "This suite decides no claim." in heading(View(finished), decides=False)


def test_the_console_cuts_no_name_and_speaks_of_points(
    finished: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    path = tmp_path / "made-up.toml"
    text = CLAIM.format(what=ACCURACY, direction="at least", value=-0.05)
    path.write_text(text.replace('["r8"]', '["rotten-tomatoes"]'), encoding="utf-8")
    result = CheckResult("suite", [evaluate_claim(load_claim(path), finished)], n_records=1)
    monkeypatch.setattr("benchmarks.checking.check.check_suite", lambda _: result)
    monkeypatch.setenv("COLUMNS", "40")
    check("suite")
    printed = capsys.readouterr().out
    assert printed.count("rotten-tomatoes │ random-at-test │ ") == 1
    assert "…" not in printed
    assert "accuracy difference at least -5.0 points, against dense" in printed
    assert ROLL_UP in printed
