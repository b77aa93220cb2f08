"""Warnings are grouped, points can be told apart, and notes stand where they belong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.reporting.sections.provenance import problems, stand_ins
from benchmarks.reporting.view import View
from benchmarks.results import collect
from benchmarks.running.store import DamagedRecordWarning


def test_warnings_that_differ_in_a_percentage_alone_are_one_line(made_up: Any, tuning: Any) -> None:
    spread = {1: 10, 4: 25, 12: 17}

    def warn(wanted: Any) -> list[str]:
        depth = wanted.point.params.get("depth", 2)
        quiet = wanted.planned.axes.get("k_fraction") != 0.25 or depth not in spread
        return [] if quiet else [f"noisy at batch 8: IQR/median is {spread[depth]}%"]

    made_up.write(tuning(warn=warn, keep=lambda w: w.meter.name == "latency"))
    text = problems(View(made_up.results()))
    [line] = [line for line in text.splitlines() if "noisy at" in line]
    assert line == (
        "- latency: noisy at batch 8: IQR/median is 10 to 25 % (3 pairs, worst first: "
        "`fixed-k` on random-tokens, depth 4, k_fraction 0.25; "
        "`fixed-k` on random-tokens, depth 12, k_fraction 0.25; "
        "`fixed-k` on random-tokens, depth 1, k_fraction 0.25)"
    )


def test_a_damaged_record_is_told_from_an_outdated_one(made_up: Any) -> None:
    made_up.write()
    path = sorted((made_up.runs / "records").glob("*/flops-*.json"))[0]
    path.write_text(path.read_text().replace('"value": ', '"value": -', 1))
    with pytest.warns(DamagedRecordWarning, match="must be at least 0"):
        results = made_up.results()
    assert (results.stale, results.damaged) == (0, 1)
    assert "- 1 stored record left out: damaged or edited" in problems(View(results))


def test_what_holds_for_all_is_said_of_all(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(warn=lambda _: ["modelled"], keep=lambda w: w.meter.name == "carbon"))
    assert "- carbon: modelled (all 14 points)" in problems(View(made_up.results()))


def test_a_note_on_some_rows_names_its_sweep(finished: Any) -> None:
    text = stand_ins(View(finished))
    assert "0.25 of the training rows (part of sweep `study`)." in text
    assert "700 of 2189 inputs cut to 64 tokens." in text


def test_sweeps_of_a_note_stand_in_the_suite_s_order() -> None:
    """Not in a set's, which changes from process to process."""
    view = View(collect("quick", reference=True))
    order = [sweep.name for sweep in view.suite.sweeps]
    [told] = re.findall(r"256 of 400 validation inputs, a fixed sample \((.*?)\)", stand_ins(view))
    named = re.findall("`([^`]+)`", told)
    assert len(named) > 2
    assert named == sorted(named, key=order.index)
