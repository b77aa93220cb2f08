"""A sparse teacher is compared with one that was trained as long and keeps everything, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reporting.sections.layers import layers
from benchmarks.reporting.sections.replacement import replacement
from benchmarks.reporting.sections.sparse_teachers import narrows_the_gap, sparse_teacher_section
from benchmarks.reporting.sparse_teachers import sparse_teachers
from benchmarks.reporting.view import View

SUITE = """
schema = 1
title = "Sparse teachers"
seeds = [0, 1]
[[sweep]]
name = "main"
datasets = ["cifar-10"]
image_size = 32
meters = ["training", "accuracy", "sparsity"]
baseline = "teacher"
params = { depth = 8, d_model = 96, n_heads = 3, patch_size = 4, samples = 10000, replace = [4, 5, 6, 7] }
variants = [
    { label = "teacher", model = "vit" },
    { label = "student", model = "vit-hybrid", source = "teacher" },
    { label = "teacher-100", model = "avit", base = "teacher", params = { keep_ratio = 1.0 } },
    { label = "student-100", model = "vit-hybrid", source = "teacher-100" },
    { label = "teacher-50", model = "avit", base = "teacher", params = { keep_ratio = 0.5 } },
    { label = "student-50", model = "vit-hybrid", source = "teacher-50" },
]
"""
LONGER = "that of halting and of longer training together"
Make = Callable[[str], View]


@pytest.fixture
def make(tmp_path: Path, made_up_suite: Any, s2s_tuning: Any) -> Make:
    return lambda text: View(made_up_suite(tmp_path, text).write(s2s_tuning()).results())


def compared(view: View) -> list[tuple[str, str]]:
    return [(p.sparse.teacher.label, p.plain.teacher.label) for p in sparse_teachers(view)]


def test_sparsity_is_told_from_longer_training(make: Make) -> None:
    view = make(SUITE)
    assert compared(view) == [("teacher-100", "teacher"), ("teacher-50", "teacher-100")]
    rows = [line for line in sparse_teacher_section(view).splitlines() if line.startswith("| `t")]
    assert [[cell.strip() for cell in row.split("|")][1::6] for row in rows] == [
        ["`teacher`", "-"], ["`teacher-100`", "`teacher`"], ["`teacher-50`", "`teacher-100`"],
    ]  # fmt: skip
    assert "of `student-100` to `teacher-100`: " in narrows_the_gap(view)


@pytest.mark.parametrize(
    "change",
    [
        ('label = "student-100"', 'params = { mixer = "identity" }, label = "student-100"'),
        ("keep_ratio = 1.0", "keep_ratio = 1.0, finetune_epochs = 1"),
    ],
)
def test_what_differs_in_more_than_sparsity_is_no_partner(
    make: Make, change: tuple[str, str]
) -> None:
    view = make(SUITE.replace(*change))
    assert ("teacher-50", "teacher") in compared(view)
    assert LONGER in sparse_teacher_section(view)


def test_without_one_it_is_said_that_the_sparse_one_trained_longer(make: Make) -> None:
    view = make("\n".join(line for line in SUITE.splitlines() if "-100" not in line))
    assert compared(view) == [("teacher-50", "teacher")]
    assert LONGER in sparse_teacher_section(view)


def test_teachers_of_one_label_are_told_apart_by_their_axis(make: Make) -> None:
    text = SUITE.replace("params = { depth", "axes = { keep_ratio = [0.8, 0.5] }\nparams = { depth")
    text = "\n".join(line for line in text.splitlines() if "-100" not in line)
    view = make(text.replace(", params = { keep_ratio = 0.5 }", ""))
    names = [f"`teacher-50, keep_ratio {ratio}`" for ratio in (0.8, 0.5)]
    for told in (replacement(view), layers(view), sparse_teacher_section(view)):
        for name in names:
            assert name in told
    assert "`teacher`" in replacement(view)
