from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from benchmarks.reporting.figures import (
    distillation,
    hybrid_fronts,
    kept_tokens,
    kernels,
    replaced_layers,
    sparsity_map,
    style,
    teacher_sparsity,
)
from benchmarks.reporting.figures.gallery import GALLERY, render_all
from benchmarks.reporting.students import teachers
from benchmarks.reporting.variant import Variant
from benchmarks.reporting.view import View
from benchmarks.results import collect

OF_HEADS = {"budget-per-layer", "heads-used", "training", "budget-by-length"}
DRAWN = [
    entry.name
    for entry in GALLERY
    if entry.group in {"hybrids", "teachers", "halting", "students", "singles", "last"}
]


def drawn(drawing: style.Drawing | style.NotDrawn) -> style.Drawing:
    assert isinstance(drawing, style.Drawing)
    return drawing


@pytest.mark.parametrize("name", [*DRAWN, "pareto-macs"])
def test_each_figure_is_whole_and_captioned_in_one_sentence(s2s_rendered: Any, name: str) -> None:
    figure = next(f for f in s2s_rendered if f.entry.name == name)
    assert figure.svg is not None, figure.note
    assert ET.fromstring(figure.svg).tag.endswith("svg")  # noqa: S314 - our own file
    assert b"<text" not in figure.svg
    assert len(figure.svg) < 250_000
    assert figure.note.endswith(".")
    assert figure.note.count(". ") == 0
    assert "seed" in figure.note or "weights" in figure.note


def test_every_figure_is_drawn_from_one_of_the_two_suites(rendered: Any, s2s_rendered: Any) -> None:
    names = {f.entry.name for f in (*rendered, *s2s_rendered) if f.svg is not None}
    assert names == {entry.name for entry in GALLERY}


def test_figures_of_head_budgets_are_not_missed_where_no_model_has_any(s2s_rendered: Any) -> None:
    assert not OF_HEADS & {f.entry.name for f in s2s_rendered}


def test_a_suite_without_single_layers_does_not_miss_their_figure(own_runs: Path) -> None:
    entries = {f.entry.name for f in render_all(View(collect("sparsity", runs=own_runs)))}
    assert "replaced-layers" not in entries
    assert "teacher-sparsity" in entries


def test_no_figure_without_its_records(s2s: Any) -> None:
    rendered = render_all(View(s2s.results()))
    assert {*DRAWN} <= {f.entry.name for f in rendered}
    for figure in rendered:
        assert figure.svg is None
        assert figure.note.endswith("yet")


@pytest.mark.parametrize(
    ("meters", "there"),
    [
        ({"accuracy"}, {"replaced-layers"}),
        ({"sparsity"}, {"sparsity-map", "kept-tokens"}),
        ({"training"}, {"distillation"}),
        ({"accuracy", "sparsity"}, {"replaced-layers", "sparsity-map", "kept-tokens", "teacher-sparsity"}),
        ({"accuracy", "memory"}, {"replaced-layers", "hybrid-fronts"}),
        ({"latency"}, {"kernels"}),
    ],
)  # fmt: skip
def test_what_is_there_is_drawn(
    s2s: Any, s2s_tuning: Any, meters: set[str], there: set[str]
) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.meter.name in meters))
    rendered = render_all(View(s2s.results()))
    found = {f.entry.name for f in rendered if f.svg is not None}
    assert found == there


def test_points_stand_at_what_was_lost(s2s_view: View, reach: Any) -> None:
    figure = drawn(replaced_layers.draw(s2s_view)).figure
    lost, sparse = figure.axes[:2]
    containers = [c for c in lost.containers if c.get_label() == "bilstm"]
    assert len(containers) == 1
    own = next(
        v for v in s2s_view.variants
        if v.sweep == "layers" and v.label == "bilstm" and v.axes["replace"] == [2]
    )  # fmt: skip
    teacher = next(v for v in s2s_view.variants if v.label == "teacher")
    gaps = [
        reach(t.point) - reach(s.point) for t, s in zip(teacher.points, own.points, strict=True)
    ]
    ys = [float(line.get_ydata()[0]) for c in lost.containers for line in [c.lines[0]]]
    assert min(abs(y - 100 * sum(gaps) / 3) for y in ys) < 0.02
    assert len(sparse.get_lines()) >= 4


def test_uninformative_layers_are_shaded(s2s_view: View) -> None:
    for ax in drawn(replaced_layers.draw(s2s_view)).figure.axes[:2]:
        shaded = [p for p in ax.patches if p.get_facecolor()[:3] == to_rgba(style.FAINT)[:3]]
        assert sorted(p.get_x() + p.get_width() / 2 for p in shaded) == [6, 7]


def test_a_row_of_maps_for_each_teacher(s2s_view: View) -> None:
    axes = drawn(sparsity_map.draw(s2s_view)).figure.axes
    titles = [ax.get_title() for ax in axes if ax.get_title()]
    assert titles == [
        f"{teacher}, {queries}"
        for teacher in ("teacher", "teacher-80", "teacher-50")
        for queries in ("all queries", "class token")
    ]
    assert axes[0].images[0].get_array().shape == (3, 8)


def test_a_map_shows_the_seeds_mean_of_each_head_the_sparsest_on_top(s2s_view: View) -> None:
    axes: Any = drawn(sparsity_map.draw(s2s_view)).figure.axes
    records = s2s_view.records(teachers(s2s_view)[0], "sparsity")
    for ax, queries in zip(axes, ("all", "class"), strict=False):
        of_heads = [record.series[f"concentration_{queries}"][3] for record in records]
        found = ax.images[0].get_array()[:, 3]
        assert list(found) == pytest.approx([np.mean([x[i] for x in of_heads]) for i in (2, 1, 0)])


def test_only_halting_teachers_have_kept_patches(s2s_view: View) -> None:
    axes = drawn(kept_tokens.draw(s2s_view)).figure.axes
    assert [ax.get_ylabel() for ax in axes if ax.get_ylabel().startswith("teacher")] == [
        "teacher-80", "teacher-50",
    ]  # fmt: skip
    assert axes[0].images[0].get_array().shape == (8, 8)


def test_the_images_stand_above_the_maps_where_they_may_be_shown(
    s2s_view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = drawn(kept_tokens.draw(s2s_view))
    assert "images themselves are left out" in bare.caption
    pixels = np.arange(32 * 32 * 3).reshape(32, 32, 3) % 256
    asked: list[str] = []

    def found(view: View, teacher: Variant, row_ids: Any) -> dict[int, Any]:
        asked.append(teacher.label)
        return dict.fromkeys(row_ids, pixels)

    monkeypatch.setattr(kept_tokens, "pictures", found)
    drawing = drawn(kept_tokens.draw(s2s_view))
    assert asked == ["teacher-80"]  # once for both teachers, which saw the same images
    assert drawing.figure.axes[0].images[0].get_array().shape == (32, 32, 3)
    labels = [ax.get_ylabel().replace("\n", " ") for ax in drawing.figure.axes]
    assert [label for label in labels if label] == [
        "cifar-10", "teacher-80", "teacher-50", "layers that computed the patch (share)",
    ]  # fmt: skip
    assert [ax.get_xlabel() for ax in drawing.figure.axes[8:24]] == [
        *[""] * 8, *[f"row {11 * i}" for i in range(8)],
    ]  # fmt: skip
    assert "above them the images" in drawing.caption


def test_sparser_teachers_stand_at_the_ratios_reached(s2s_view: View) -> None:
    right = drawn(teacher_sparsity.draw(s2s_view)).figure.axes[1]
    lines = {line.get_label(): line for line in right.get_lines()}
    assert list(lines["teacher"].get_xdata()) == pytest.approx([0.53, 0.78, 1.0])
    assert list(lines["teacher"].get_ydata()) == pytest.approx([64, 69, 70])


def test_the_gap_to_a_sparser_teacher_stands_at_its_ratio(s2s_view: View, reach: Any) -> None:
    left: Any = drawn(teacher_sparsity.draw(s2s_view)).figure.axes[0]
    line = next(c for c in left.containers if c.get_label() == "bilstm in 4-7").lines[0]
    teacher, student = (
        next(v for v in s2s_view.variants if v.label == label)
        for label in ("teacher-50", "student-50")
    )
    gaps = [
        reach(t.point) - reach(s.point) for t, s in zip(teacher.points, student.points, strict=True)
    ]
    assert line.get_xdata()[0] == pytest.approx(0.53)
    assert line.get_ydata()[0] == pytest.approx(100 * sum(gaps) / 3, abs=0.02)


def test_time_of_the_teacher_is_one_and_a_student_slower_than_it_stands_right_of_it(
    s2s_view: View,
) -> None:
    first = drawn(hybrid_fronts.draw(s2s_view)).figure.axes[0]
    xs: dict[str, list[float]] = {}
    for line in first.get_lines():
        xs.setdefault(str(line.get_label()), []).append(float(line.get_xdata()[0]))
    assert xs["teacher"] == [1.0]
    assert min(xs["bilstm"]) > 1 > min(xs["identity"])


def test_a_student_stands_at_its_parameters(s2s_view: View, reach: Any) -> None:
    last: Any = drawn(hybrid_fronts.draw(s2s_view)).figure.axes[2]
    assert last.get_xlabel() == "parameters (M)"
    marks = [line for line in last.get_lines() if line.get_label() == "bilstm"]
    (mark,) = (line for line in marks if line.get_xdata()[0] == 0.94)
    own = next(
        v
        for v in s2s_view.variants
        if v.label == "bilstm" and v.axes.get("replace") == [4, 5, 6, 7]
    )
    accuracy = sum(reach(p.point) for p in own.points) / 3
    assert mark.get_ydata()[0] == pytest.approx(100 * accuracy, abs=0.02)


def test_a_course_at_four_tenths(s2s_view: View, reach: Any) -> None:
    panel: Any = next(
        ax
        for ax in drawn(distillation.draw(s2s_view)).figure.axes
        if ax.get_title() == "layers 4-7 replaced"
    )
    line = next(line for line in panel.get_lines() if line.get_label() == "bilstm of teacher")
    own = next(v for v in s2s_view.variants if v.label == "bilstm-last-half")
    reached = sum(reach(p.point) - 0.3 * 0.6**2 for p in own.points) / 3
    assert line.get_xdata()[3] == 4.0
    assert line.get_ydata()[3] == pytest.approx(100 * reached)


def test_the_course_of_each_student_ends_at_all_samples(s2s_view: View) -> None:
    for ax in drawn(distillation.draw(s2s_view)).figure.axes:
        courses = [line for line in ax.get_lines() if len(line.get_xdata()) > 2]
        assert courses
        assert {float(line.get_xdata()[-1]) for line in courses} == {10.0}


def test_speed_stands_beside_the_promise(s2s_view: View) -> None:
    figure = drawn(kernels.draw(s2s_view)).figure
    rows = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()]
    assert rows == ["speed-up at batch 1 (x)", "speed-up at batch 32 (x)"]
    all_replaced = figure.axes[1]
    realised = next(c for c in all_replaced.containers if c.get_label() == "bilstm").lines[0]
    assert list(realised.get_xdata()) == [197, 785, 1601]
    assert realised.get_ydata()[0] == pytest.approx(0.5)
    dashed = [line for line in all_replaced.get_lines() if line.get_linestyle() == "--"]
    assert any(line.get_ydata()[0] == pytest.approx(0.9) for line in dashed)
