"""Tables of trained sweeps along axes, and what two names for the same weights come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.reporting.sections.caveats import caveats
from benchmarks.reporting.sections.studies import studies
from benchmarks.reporting.view import View

SUITE = """
schema = 1
title = "Two sweeps"
seeds = [0, 1]
[[sweep]]
name = "gates"
datasets = ["r8"]
max_length = 64
meters = ["training", "accuracy"]
params = { depth = 2, d_model = 64, n_heads = 8, s_min = 0.1, s_max = 0.3 }
axes = { keep_gate = [false, true] }
variants = [{ label = "budget-low", model = "budgetformer" }]
[[sweep]]
name = "parts"
datasets = ["r8"]
max_length = 64
meters = ["training", "accuracy"]
params = { depth = 2, d_model = 64, n_heads = 8 }
variants = [{ label = "dense", model = "dense" }]
[[sweep]]
name = "once-more"
datasets = ["r8"]
max_length = 64
meters = ["training", "accuracy"]
baseline = "budget-low"
params = { depth = 2, d_model = 64, n_heads = 8 }
variants = [
    { label = "budget-low", model = "dense" },
    { label = "random-trained", model = "random-trained", source = "budget-high" },
    { label = "budget-high", model = "budgetformer" },
]
"""


@pytest.fixture
def two(tmp_path: Path, made_up_suite: Any) -> Any:
    return made_up_suite(tmp_path, SUITE)


def test_a_column_that_no_meter_fills_is_not_there_and_truth_has_its_words(two: Any) -> None:
    text = studies(View(two.write().results()))
    assert "MACs" not in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if "`budget-low`" in line]
    assert rows == ["false", "true"]


def test_macs_are_missing_where_they_were_asked_for(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: w.meter.name == "accuracy"))
    text = studies(View(made_up.results()))
    assert "MACs per input (M)" in text
    assert "missing" in text


def test_weights_with_two_names_are_warned_of_once(two: Any) -> None:
    [line] = [x for x in caveats(View(two.write().results())).splitlines() if "bag of words" in x]
    assert "`dense`, trained on" in line
