"""The suite of the S2S paper, its reduction, and what a reduction may change beside values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.catalog import WEIGHTS
from benchmarks.cli import app
from benchmarks.errors import InvalidFileError
from benchmarks.planning.expand import expand
from benchmarks.planning.suite import load_suite
from benchmarks.training.recipe import Recipe

WHOLE, SMALL = "paper-s2s", "paper-s2s-small"
STANDS_FOR = {"imagenet-1k": "cifar-10", "cifar-100": "mnist-5k"}
GROUPS = {(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11), tuple(range(6, 12)), tuple(range(12))}


def test_every_student_of_the_study_is_there_with_its_controls() -> None:
    students: dict[tuple[str, int, str], set[tuple[int, ...]]] = {}
    for planned in expand(load_suite(WHOLE)).points:
        point = planned.point
        if point.model != "vit-hybrid":
            continue
        assert point.source is not None
        assert point.params["samples"] % 300 == 0
        assert planned.baseline is not None
        if point.source.model == "vit" and "sparse" not in planned.sweep:
            assert point.source == planned.baseline
            assert point.source.pretrained == f"deit-{point.label.partition('-')[0]}"
            key = (point.dataset, point.source.params["d_model"], point.label.partition("-")[2])
            students.setdefault(key, set()).add(tuple(point.params.get("replace", ())))
    for dataset, width in (*[(d, w) for d in STANDS_FOR for w in (192, 384)], ("imagenet-1k", 768)):
        for mixer in ("bilstm", "bimamba", "identity"):
            assert students[dataset, width, mixer] == GROUPS
        assert students[dataset, width, "continued"] == {()}
    assert len(students) == 5 * 4


def test_sparse_teachers_are_trained_without_mixup_and_keep_less_and_less() -> None:
    found: dict[str, set[float]] = {name: set() for name in STANDS_FOR}
    for planned in expand(load_suite(WHOLE)).points:
        point, recipe = planned.point, Recipe.from_declared(planned.point.recipe or {})
        sparse = "sparse" in planned.sweep
        assert (recipe.mixup, recipe.cutmix) == ((0.0, 0.0) if sparse else (0.8, 1.0))
        assert (recipe.label_smoothing, recipe.weight_decay) == (0.1, 0.05)
        if point.model == "avit":
            assert point.base is not None
            assert point.base.pretrained == "deit-tiny"
            found[point.dataset].add(point.params["keep_ratio"])
    assert set(map(tuple, map(sorted, found.values()))) == {(0.4, 0.6, 0.8, 1.0)}


def test_it_is_planned_at_least_where_rows_are_unknown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("FRUGALBENCH_DATA", "")
    assert app.run(["plan", WHOLE]) == 0
    said = capsys.readouterr().out
    assert "at least" in said
    assert "to fetch first: cifar-100, imagenet-1k" in said
    assert "weights to fetch first: deit-base, deit-small, deit-tiny (457 MB)" in said
    assert app.run(["plan", WHOLE, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["weights_to_fetch"] == ["deit-base", "deit-small", "deit-tiny"]


def test_the_reduction_has_every_sweep_variant_and_meter() -> None:
    small, whole = load_suite(SMALL), load_suite(WHOLE)
    for mine, other in zip(small.sweeps, whole.sweeps, strict=True):
        for key in ("name", "meters", "baseline", "exclude", "include"):
            assert getattr(mine, key) == getattr(other, key), key
        assert [(v.label, v.model, v.needs) for v in mine.variants] == [
            (v.label, v.model, v.needs) for v in other.variants
        ]
        assert list(mine.datasets) == [STANDS_FOR[name] for name in other.datasets]
        assert list(mine.axes) == list(other.axes)
        assert mine.max_length == 32
    assert WEIGHTS.names()
    points = [planned.point for planned in expand(small).points]
    assert not any(p.pretrained for p in points)
    assert {p.params["depth"] for p in points} == {4}
    assert {p.params["d_model"] for p in points} == {32, 48, 64}
    assert {p.params["samples"] for p in points if p.model == "vit-hybrid"} == {1280}


ORIGINAL = """
schema = 1
title = "To be reduced"
[[sweep]]
name = "teacher"
datasets = ["cifar-10"]
image_size = 32
meters = ["accuracy"]
params = { depth = 8, d_model = 96, n_heads = 4 }
variants = [{ label = "teacher", model = "vit" }]
"""
STUDENTS = """
[[sweep]]
name = "NAME"
datasets = ["cifar-10"]
image_size = 32
meters = ["accuracy"]
params = { depth = 8, d_model = 96, n_heads = 4, samples = 1000 }
axes = { replace = [[4], [5]] }
variants = [
    { label = "teacher", model = "vit" },
    { label = "bigru", model = "vit-hybrid", source = "teacher", params = { mixer = "bigru" } },
]
"""


def written(folder: Path, text: str) -> str:
    """A suite of the sweeps teacher, layers and groups, and one that reduces it."""
    students = [STUDENTS.replace("NAME", name) for name in ("layers", "groups")]
    whole, path = folder / "whole.toml", folder / "small.toml"
    whole.write_text("".join([ORIGINAL, *students]))
    path.write_text(f'schema = 1\ntitle = "Small"\nreduces = "{whole}"\n{text}')
    return str(path)


def test_one_sweep_s_changes_go_over_those_of_every_one(tmp_path: Path) -> None:
    text = """
[every]
datasets = { cifar-10 = "mnist-5k" }
params = { depth = 4, samples = 64 }
without = ["n_heads", "mixer"]
axes = { replace = [[0]] }
[sweeps.groups]
datasets = { cifar-10 = "digits" }
params = { depth = 2 }
axes = { replace = [[1]] }
meters = []
"""
    with pytest.raises(InvalidFileError, match=r"sweeps\.groups: unknown key 'meters'"):
        load_suite(written(tmp_path, text))
    suite = load_suite(written(tmp_path, text.replace("meters = []\n", "")))
    found = {sweep.name: sweep for sweep in suite.sweeps}
    assert found["groups"].datasets == ("digits",)
    assert found["layers"].datasets == found["teacher"].datasets == ("mnist-5k",)
    assert found["groups"].params == {"depth": 2, "d_model": 96, "samples": 64}
    assert found["layers"].params["depth"] == 4
    assert "samples" not in found["teacher"].params  # no model there has it
    assert not any(v.params for v in found["layers"].variants)
    assert (found["groups"].axes, found["layers"].axes) == ({"replace": [[1]]}, {"replace": [[0]]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[every]\ndatasets = { cifar = "digits" }',
            r"every\.datasets\.cifar: no sweep of 'whole' has this data set; did you mean 'cifar-10'",
        ),
        ('[every]\ndatasets = { cifar-10 = "digit" }', "unknown data set 'digit'.*'digits'"),
        (
            '[every]\nwithout = ["pretrained"]',
            r"every\.without\.pretrained: no sweep of 'whole' has this parameter\. Known: d_model, ",
        ),
        ("[sweeps.group]", "sweeps: unknown sweep 'group'.*'groups'"),
        (
            "[sweeps.teacher]\naxes = { replace = [[0]] }",
            "sweep 'teacher' of 'whole' has no axis 'replace' .*sweeps that have it: layers, groups",
        ),
        (
            "[every]\nparams = { sample = 1 }",
            r"every\.params\.sample: no sweep of 'whole' has this parameter; did you mean 'samples'",
        ),
    ],
)
def test_a_change_of_what_is_not_there_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidFileError, match=message) as caught:
        load_suite(written(tmp_path, text))
    assert "small.toml" in str(caught.value)


def test_samples_may_be_many_but_sizes_may_not(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, "[every]\nparams = { samples = 384350100 }"))
    assert suite.sweeps[1].params["samples"] == 384350100
    for wrong in ("samples = 1099511627777", "d_model = 1048577"):
        with pytest.raises(InvalidFileError, match="is beyond"):
            load_suite(written(tmp_path, f"[every]\nparams = {{ {wrong} }}"))
