"""Mistakes in suites of images, teachers and students: told before anything is trained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.cli.app import run
from benchmarks.planning.suite import load_suite

VISION = """\
schema = 1
title = "Vision"
seeds = [0]

[[sweep]]
name = "s2s"
datasets = ["digits"]
image_size = 8
meters = ["training", "accuracy"]
baseline = "teacher"
params = { depth = 2, d_model = 32, n_heads = 2, patch_size = 2, samples = 64, batch_size = 16 }

[[sweep.variants]]
label = "teacher"
model = "vit"

[[sweep.variants]]
label = "sparse"
model = "avit"
base = "teacher"
params = { keep_ratio = 0.7 }

[[sweep.variants]]
label = "student"
model = "vit-hybrid"
source = "teacher"
params = { mixer = "bilstm", replace = [1] }
"""

WRONG = [
    ("replace = [1]", 'replace = "last"', r"params\.replace: .*not 'last'"),
    ("replace = [1]", "replace = 1", r"params\.replace: Input should be a valid list, not 1"),
    ("replace = [1]", "replace = [-1]", "replace: there is no layer -1; they are counted from 0"),
    ("replace = [1]", "replace = [1, 0]", r"layer 0 stands after 1; .*ascending order: \[0, 1\]"),
    ("replace = [1]", "replace = [1, 1]", "replace: layer 1 is named twice"),
    ("replace = [1]", "replace = [2]", "there is no layer 2 among 2; they are 0 to 1"),
    ("replace = [1]", "replace = [0.5]", r"params\.replace: .*not \[0\.5\]"),
    ('"bilstm"', '"bilstn"', "unknown mixer 'bilstn'; did you mean 'bilstm'"),
    ('"bilstm"', '"bilstm", kernel_size = 3', "unknown option of the mixer 'bilstm' 'kernel_size'"),
    ('"bilstm"', '"conv", kernel_size = 2', "kernel_size of the mixer 'conv' must be odd.*not 2"),
    ('source = "teacher"', 'source = "sparse2"', "unknown variant 'sparse2'; did you mean 'sparse'"),
    ('source = "teacher"\n', "", "takes its teacher from a trained model; give the label of one"),
    ('base = "teacher"\n', "", "takes its weights from a trained model; give the label of one"),
    ('base = "teacher"', 'base = "student"', "base: 'vit-hybrid' is built on another model itself"),
    ("keep_ratio = 0.7", "keep_ratio = 0", r"keep_ratio must lie in \(0, 1\], not 0"),
    ("keep_ratio = 0.7", "keep_ratio = 1.5", r"keep_ratio must lie in \(0, 1\], not 1\.5"),
    ("keep_ratio = 0.7", "keep_ratio = 0.4", r"keep_ratio = 0\.4 cannot be reached with depth = 2"),
    ("keep_ratio = 0.7", 'mode = "s2"', r"params\.mode: .*'s2s' or 'avit2022', not 's2'"),
    ("keep_ratio = 0.7", "depth = 3", "depth = 3, but the base 'teacher' has 2; give both the same"),
    ("keep_ratio = 0.7", "d_model = 16", "d_model = 16, but the base 'teacher' has 32"),
    ("keep_ratio = 0.7", "d_ff = 16", r"d_ff = 16, but the base 'teacher' has \d+"),
    ("keep_ratio = 0.7", "patch_size = 4", "patch_size = 4, but the base 'teacher' has 2"),
    ("patch_size = 2", "patch_size = 3", "patch_size = 3 does not divide the images' side of 8"),
    ("samples = 64", "samples = -1", "samples must not be negative, not -1"),
    ("batch_size = 16", "batch_size = 0", "batch_size must be at least 1, not 0"),
    ("image_size = 8", "image_size = 0", "image_size: .*greater than or equal to 1, not 0"),
    ("image_size = 8", 'image_size = "8"', "image_size: .*valid integer, not '8'"),
    ("image_size = 8", "image_size = 100000", "image_size must be at most 4096 pixels, not 100000"),
    ("image_size = 8", "image_size = 8\nmax_length = 8", "image_size: is max_length under its name"),
    ("image_size = 8", "image_sise = 8", "unknown key 'image_sise'; did you mean 'image_size'"),
    ('"accuracy"]', '"complexity"]', "'complexity' measures texts, but data set 'digits' has images"),
    ('"digits"', '"rotten-tomatoes"', "reads images, but data set 'rotten-tomatoes' has texts"),
    ('model = "vit"', 'model = "dense"', "reads texts, but data set 'digits' has images"),
    ("image_size", 'recipe = { augment = "crops" }\nimage_size', "augment: .*not 'crops'"),
]  # fmt: skip


def refused(content: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a suite that `plan` must refuse."""
    path = folder / "mine.toml"
    path.write_text(content, encoding="utf-8")
    assert run(["plan", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"frugalbench: {path}: ")
    return err


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[new for _, new, _ in WRONG])
def test_a_wrong_value_is_named(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in VISION
    assert re.search(message, refused(VISION.replace(old, new, 1), tmp_path, capsys))


def test_heads_are_compared_although_no_shape_tells_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # queries, keys and values of 2 heads of 16 and of 4 heads of 8 are matrices of one shape
    said = refused(VISION.replace("keep_ratio = 0.7", "n_heads = 4"), tmp_path, capsys)
    assert "n_heads = 4, but the base 'teacher' has 2; give both the same" in said


def test_the_good_suite_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(VISION)
    assert run(["plan", str(tmp_path / "mine.toml")]) == 0
    assert "3 points, 0 of 6 records done" in capsys.readouterr().out


SIDES = """
schema = 1
title = "Sides"
[[sweep]]
name = "s"
datasets = ["digits"]
image_size = 8
meters = ["accuracy"]
axes = { image_size = [4, 8], depth = [1, 2] }
exclude = [{ image_size = 8, depth = 2 }]
skip = [{ match = { image_size = 4 }, reason = "small" }]
params = { patch_size = 2 }
[[sweep.variants]]
label = "teacher"
model = "vit"
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("every = 3", r"every: Input should be a valid table, not 3\n"),
        ("[every]\nimage_size = 0", r"every: image_size: .*greater than or equal to 1, not 0"),
        ("[every]\nimage_size = 5", "patch_size = 2 does not divide the images' side of 5 pixels"),
        ("[every]\nmax_length = 8\nimage_size = 4", "image_size: is max_length under its name"),
        (
            "[every]\naxes = { max_length = [4], image_size = [4] }",
            "every.axes: image_size is max_length under its name for images; give one of them",
        ),
        ('[every]\ndatasets = { mnist-5k = "digits" }', "no sweep .* has this data set"),
        ('[every]\ndatasets = { digits = "r8" }', "reads images, but data set 'r8' has texts"),
        ("[every.params]\nd_modl = 16", "every.params.d_modl: .*; did you mean 'd_model'"),
        ('[every]\nwithout = ["layer_scale"]', "every.without.layer_scale: no sweep of .* has"),
        ("[sweeps.s3s]\nmax_length = 4", "sweeps: unknown sweep 's3s'; did you mean 's2s'"),
    ],
)
def test_a_wrong_reduction_is_named(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "whole.toml").write_text(VISION)
    head = f'schema = 1\ntitle = "Less"\nreduces = "{tmp_path / "whole.toml"}"\n'
    assert re.search(message, refused(head + line, tmp_path, capsys))


def test_a_reduction_may_say_image_size(tmp_path: Path) -> None:
    (tmp_path / "whole.toml").write_text(VISION)
    (tmp_path / "less.toml").write_text(
        f'schema = 1\ntitle = "Less"\nreduces = "{tmp_path / "whole.toml"}"\n'
        "[every]\nimage_size = 4\n"
    )
    assert {sweep.max_length for sweep in load_suite(str(tmp_path / "less.toml")).sweeps} == {4}


def test_the_side_of_images_may_be_an_axis_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "sides.toml").write_text(SIDES)
    (sweep,) = load_suite(str(tmp_path / "sides.toml")).sweeps
    assert sweep.axes == {"max_length": [4, 8], "depth": [1, 2]}
    assert sweep.exclude == [{"max_length": 8, "depth": 2}]
    assert sweep.skip[0].match == {"max_length": 4}
