"""Teachers of one name on images of several sizes are told apart, and empty panels left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.reporting.figures import replaced_layers, study
from benchmarks.reporting.figures.style import Drawing
from benchmarks.reporting.sections.layers import layers
from benchmarks.reporting.sections.replacement import replacement
from benchmarks.reporting.view import View

SUITE = """
schema = 1
title = "Two sizes"
seeds = [0, 1]
[[sweep]]
name = "sizes"
datasets = ["cifar-10"]
image_size = 32
meters = ["training", "accuracy", "deletion"]
baseline = "teacher"
axes = { image_size = [16, 32], replace = [[0], [1]] }
params = { depth = 8, d_model = 96, n_heads = 3, patch_size = 4, samples = 10000 }
variants = [
    { label = "teacher", model = "vit" },
    { label = "bilstm", model = "vit-hybrid", source = "teacher" },
]
"""


@pytest.fixture
def view(tmp_path: Path, made_up_suite: Any, s2s_tuning: Any) -> View:
    return View(made_up_suite(tmp_path, SUITE).write(s2s_tuning()).results())


def test_headings_name_the_size(view: View) -> None:
    for text, lead in (
        (replacement(view), "### Students of `teacher` on "),
        (layers(view), "### "),
    ):
        headings = [line for line in text.splitlines() if line.startswith(lead)]
        assert len(headings) == len(set(headings)) == 2
        assert all(
            f", at {n} x {n} pixels" in line for n, line in zip((16, 32), headings, strict=True)
        )


def test_one_size_needs_no_name(s2s_view: View) -> None:
    assert "pixels" not in replacement(s2s_view)


def test_panels_that_would_be_empty_are_not_there(view: View, s2s_view: View) -> None:
    """This suite measures no sparsity, and its teachers have no budget."""
    drawings = [replaced_layers.draw(view), study.draw(view), replaced_layers.draw(s2s_view)]
    assert all(isinstance(drawing, Drawing) for drawing in drawings)
    shapes = [len(drawing.figure.axes) for drawing in drawings if isinstance(drawing, Drawing)]
    assert shapes == [2, 1, 2]
