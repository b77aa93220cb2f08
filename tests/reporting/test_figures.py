from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from benchmarks.reporting.figures import cost_scaling, style, training
from benchmarks.reporting.figures.axes import lines, numeric
from benchmarks.reporting.figures.fronts import front
from benchmarks.reporting.figures.gallery import GALLERY, render_all
from benchmarks.reporting.view import View

OF_TEACHERS = {"hybrids", "teachers", "halting", "students", "singles", "last"}
"""Groups of figures that the tests beside the suite of replaced layers look at."""
NAMES = [entry.name for entry in GALLERY if entry.group not in OF_TEACHERS]


@pytest.fixture(scope="module")
def view(finished: Any) -> View:
    return View(finished)


@pytest.fixture(scope="module")
def by_name(rendered: Any) -> dict[str, Any]:
    return {figure.entry.name: figure for figure in rendered}


@pytest.mark.parametrize("name", NAMES)
def test_each_figure_is_whole_svg_without_date_and_needs_no_font(
    by_name: dict[str, Any], name: str
) -> None:
    svg = by_name[name].svg
    assert svg is not None, by_name[name].note
    root = ET.fromstring(svg)  # noqa: S314 - our own file
    assert root.tag.endswith("svg")
    assert b"<text" not in svg
    assert b"dc:date" not in svg
    assert len(svg) < 250_000


@pytest.mark.parametrize("name", NAMES)
def test_each_caption_is_one_sentence_that_names_seeds_or_inputs(
    by_name: dict[str, Any], name: str
) -> None:
    note = by_name[name].note
    assert note.endswith(".")
    assert note.count(". ") == note.count(" .") == 0
    assert "seed" in note or "weights" in note


def test_no_figure_without_its_records(made_up: Any) -> None:
    for figure in render_all(View(made_up.results())):
        assert figure.svg is None
        assert figure.note.endswith("yet")


def test_one_epoch_is_no_course_of_training(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: w.meter.name == "training", epochs=1))
    drawn = training.draw(View(made_up.results()))
    assert isinstance(drawn, style.NotDrawn)
    assert drawn.reason.startswith("one epoch")


def test_records_of_one_data_set_alone_are_drawn(made_up: Any, tuning: Any) -> None:
    made_up.write(
        tuning(keep=lambda w: w.point.dataset == "r8" and w.meter.name in {"accuracy", "flops"})
    )
    drawn = {f.entry.name: f.svg is not None for f in render_all(View(made_up.results()))}
    assert drawn == {
        "pareto-macs": True,
        "pareto-latency": False,
        "cost-scaling": False,
        "study": True,
        "budget-per-layer": True,
        "heads-used": True,
        "training": False,
        "budget-by-length": True,
        "complexity": False,
    }


def test_front_keeps_what_nothing_beats() -> None:
    assert front([(3, 0.9), (1, 0.5), (2, 0.4), (2, 0.8), (4, 0.9)]) == [
        (1, 0.5),
        (2, 0.8),
        (3, 0.9),
    ]


def test_study_holds_the_settings_it_shares_with_the_main_sweep(view: View) -> None:
    variants = view.studies["study", "r8"]
    assert numeric(variants) == ["depth", "train_fraction"]
    found = lines(view, variants, "depth")
    assert [x for x, _ in found["budget-low", "train share 1"]] == [2.0, 4.0]
    shared = found["budget-low", "train share 1"][0][1]
    assert shared.group_id in {v.group_id for v in view.main["r8"]}


def test_cost_lines_are_named_by_k(view: View) -> None:
    names = set(lines(view, view.costs["cost-depth"], "depth"))
    assert names == {("dense", "")} | {("fixed-k", f"k = {k}") for k in ("H/8", "H/4", "H/2", "H")}


def ydata(line: Any) -> list[float]:
    return [float(y) for y in line.get_ydata()]


def test_cost_is_shown_at_every_batch_size_that_was_timed(view: View) -> None:
    drawing = cost_scaling.draw(view)
    assert isinstance(drawing, style.Drawing)
    rows = [ax for ax in drawing.figure.axes if ax.get_ylabel()]
    assert [ax.get_ylabel().splitlines()[0] for ax in rows] == [
        "MACs per input (M)", "time at batch 1,", "time at batch 32,",
    ]  # fmt: skip
    assert "a batch of 1 and of 32" in drawing.caption
    fixed = next(v for v in view.costs["cost-depth"] if v.axes == {"depth": 4, "k_fraction": 0.25})
    record = view.first(fixed, "latency")
    assert record is not None
    speedup = record.get("speedup", batch_size=32)
    assert speedup is not None
    drawn = [y for line in rows[2].get_lines() for y in ydata(line)]
    for value in (speedup.value, speedup.low, speedup.high):
        assert value is not None
        assert 1 / value in drawn


def test_the_loss_terms_are_those_of_the_record(view: View) -> None:
    drawing = training.draw(view)
    assert isinstance(drawing, style.Drawing)
    task, added = (
        next(ax for ax in drawing.figure.axes if ax.get_ylabel() == name)
        for name in training.ROWS[:2]
    )
    for line in task.get_lines():
        assert ydata(line) == pytest.approx([0.9, 0.4, 0.2])
    drawn = [ydata(line) for line in added.get_lines()]
    for term in ([0.05, 0.01, 0.002], [-0.008, 0.0, 0.006]):
        assert pytest.approx(term) in drawn


def test_looks_differ_between_all_names() -> None:
    looks = style.looks([str(i) for i in range(20)])
    assert len(set(looks.values())) == 20
