from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.axes import lines, numeric
from benchmarks.reporting.figures.fronts import front
from benchmarks.reporting.figures.gallery import GALLERY, render_all
from benchmarks.reporting.view import View


@pytest.fixture(scope="module")
def view(finished: Any) -> View:
    return View(finished)


@pytest.fixture(scope="module")
def by_name(rendered: Any) -> dict[str, Any]:
    return {figure.entry.name: figure for figure in rendered}


@pytest.mark.parametrize("name", [entry.name for entry in GALLERY])
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


@pytest.mark.parametrize("name", [entry.name for entry in GALLERY])
def test_each_caption_is_one_sentence_that_names_seeds_or_inputs(
    by_name: dict[str, Any], name: str
) -> None:
    note = by_name[name].note
    assert note.endswith(".")
    assert note.count(". ") == 0
    assert "seed" in note or "weights" in note


def test_no_figure_without_its_records(made_up: Any) -> None:
    for figure in render_all(View(made_up.results())):
        assert figure.svg is None
        assert figure.note.endswith("yet")


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


def test_looks_differ_between_all_names() -> None:
    looks = style.looks([str(i) for i in range(20)])
    assert len(set(looks.values())) == 20
