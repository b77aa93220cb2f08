"""Suites that are another one at reduced size, and running them where some data are missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.catalog import DATASETS
from benchmarks.cli import app
from benchmarks.data.mirror import VARIABLE
from benchmarks.errors import InvalidFileError, UsageError
from benchmarks.paths import CHECKOUT
from benchmarks.planning.expand import expand
from benchmarks.planning.suite import load_suite
from benchmarks.running.store import RecordStore

REDUCED = {"paper-budgetformer-small": "paper-budgetformer"}
ROOT = "FRUGALBENCH_DATA_ROOT"


STARTS = """
[[sweep]]
name = "s"
datasets = ["r8"]
max_length = 8
meters = ["accuracy"]
axes = { initial_budget = [0.2, 0.8] }
[[sweep.variants]]
label = "dense"
model = "dense"
[[sweep.variants]]
label = "budget"
model = "budgetformer"
params = { s_min = 0.1, s_max = 0.9 }
"""


def written(folder: Path, text: str, name: str = "small.toml") -> str:
    path = folder / name
    path.write_text(f'schema = 1\ntitle = "Small"\n{text}')
    return str(path)


@pytest.mark.parametrize("name", REDUCED)
def test_a_reduced_suite_has_every_sweep_variant_and_meter_of_the_whole(name: str) -> None:
    small, whole = load_suite(name), load_suite(REDUCED[name])
    assert [s.name for s in small.sweeps] == [s.name for s in whole.sweeps]
    for mine, other in zip(small.sweeps, whole.sweeps, strict=True):
        for key in ("datasets", "meters", "baseline", "variants", "stage", "trained"):
            assert getattr(mine, key) == getattr(other, key), key
        assert list(mine.axes) == list(other.axes)
        assert mine.max_length <= 32 < other.max_length
    assert small.title != whole.title


@pytest.mark.parametrize("name", REDUCED)
def test_no_point_of_it_is_one_of_the_whole_s_and_all_are_small(name: str) -> None:
    small = [p.point for p in expand(load_suite(name)).points]
    whole = {p.point.point_id for p in expand(load_suite(REDUCED[name])).points}
    assert not whole & {point.point_id for point in small}
    assert {point.seed for point in small} == {0}
    for point in small:
        assert point.params.get("d_model", 64) <= 64
        assert point.train_fraction <= 0.1
        assert point.params["d_ff"] == 128


def test_values_go_over_the_sweep_s_own_and_axes_only_where_they_are(tmp_path: Path) -> None:
    text = """
reduces = "ablations"
[every]
train_fraction = 0.5
params = { d_model = 16 }
recipe = { epochs = 1 }
axes = { budget = [0.5] }
"""
    small, whole = load_suite(written(tmp_path, text)), load_suite("ablations")
    for mine, other in zip(small.sweeps, whole.sweeps, strict=True):
        assert mine.params == other.params | {"d_model": 16}
        assert mine.recipe == other.recipe
        assert mine.train_fraction == 0.5
        assert mine.axes == other.axes | ({"budget": [0.5]} if "budget" in other.axes else {})
        assert (mine.max_length, mine.seeds) == (other.max_length, other.seeds)
    assert small.recipe == whole.recipe | {"epochs": 1}
    assert small.seeds == whole.seeds
    assert small.name == "small"


def test_what_sweeps_say_for_themselves_is_gone_over_too(tmp_path: Path) -> None:
    text = """
reduces = "budget"
[every]
seeds = [7]
recipe = { epochs = 1 }
options = { latency = { n_processes = 1 } }
"""
    small, whole = load_suite(written(tmp_path, text)), load_suite("budget")
    assert small.seeds == (7,)
    assert small.recipe == whole.recipe | {"epochs": 1}
    assert {point.point.seed for point in expand(small).points} == {7}
    mine, other = small.sweeps[-1], whole.sweeps[-1]
    assert other.recipe["epochs"] == 2
    assert mine.recipe == other.recipe | {"epochs": 1}
    assert mine.options["latency"] == other.options["latency"] | {"n_processes": 1}
    assert small.options_for("pretrained", "latency") == {"batch_sizes": [1, 8], "n_processes": 1}
    for planned in expand(small).points:
        assert (planned.point.recipe or {}).get("epochs") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('reduces = "quick"\n[every]\nepoch = 1', r"small.toml: every: unknown key 'epoch'"),
        ('reduces = "quick"\n[[sweep]]\nname = "a"', "small.toml: unknown key 'sweep'"),
        ('reduces = "quick"\n[every]\nmax_length = 0', "every.max_length: .*not 0"),
        (
            'reduces = "quick"\n[every]\naxes = { gate = ["budget"] }',
            r"every.axes.gate: no sweep of 'quick' has this axis\. Known: ",
        ),
        (
            'reduces = "quick"\n[every]\nparams = { d_modle = 8 }',
            r"every.params.d_modle: no sweep of 'quick' has this parameter; did you mean 'd_model'[^\n]*$",
        ),
        (
            'reduces = "replacement"\n[sweeps.last-half]\naxes = { replace = [[1]] }',
            r"sweeps.last-half.axes.replace: .* no axis 'replace' \(it has none\); .* it: layers, groups$",
        ),
        (
            'reduces = "kernels"\n[every]\naxes = { image_sizes = [32] }',
            "every.axes.image_sizes: .*did you mean 'image_size'",
        ),
        (
            'reduces = "replacement"\n[sweeps.layers]\noptions.latency = { n_processes = 1 }',
            "sweeps.layers.options.latency: sweep 'layers' .*has no meter 'latency' .*it: last-few, groups$",
        ),
        (
            'reduces = "starts.toml"\n[every]\noptions.latency = { n_processes = 1 }',
            "every.options.latency: no sweep of 'starts' measures it",
        ),
        (
            'reduces = "starts.toml"\n[sweeps.s]\nparams = { mixer = "conv" }',
            "sweeps.s.params.mixer: no sweep of 'starts' has this parameter",
        ),
        (
            'reduces = "nothere.toml"',
            r"small.toml: reduces: .*nothere.toml: cannot be read: No such file",
        ),
        (
            'reduces = "starts.toml"\n[every]\nparams = { initial_budget = 0.5 }',
            "every.params.initial_budget: changes nothing, for every variant that has it",
        ),
        (
            'reduces = "starts.toml"\n[sweeps.s]\nparams = { s_max = 0.5 }',
            "sweeps.s.params.s_max: changes nothing",
        ),
        (
            'reduces = "starts.toml"\n[every]\nparams = { s_max = 0.5 }\nwithout = ["s_max"]',
            "every.params.s_max: changes nothing, for without names it too",
        ),
        (
            'reduces = "paper-budgetformer-small"',
            "reduces: 'paper-budgetformer-small' is a reduction of 'paper-budgetformer' itself",
        ),
    ],
)
def test_a_wrong_reduction_is_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    written(tmp_path, STARTS, "starts.toml")
    with pytest.raises(InvalidFileError, match=message) as caught:
        load_suite(written(tmp_path, text))
    assert "small.toml" in str(caught.value)


def test_a_path_to_reduce_starts_at_the_file_s_own_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    written(tmp_path, STARTS, "starts.toml")
    for path in ("../starts.toml", str(tmp_path / "starts.toml")):
        text = f'reduces = "{path}"\n[every]\nwithout = ["s_max"]'
        small = load_suite(written(tmp_path / "sub", text))
        assert small.sweeps[0].variants[1].params == {"s_min": 0.1}


def test_a_suite_that_there_is_not_cannot_be_reduced(tmp_path: Path) -> None:
    said = "small.toml: reduces: unknown suite 'quik'; did you mean 'quick'"
    with pytest.raises(UsageError, match=said):
        load_suite(written(tmp_path, 'reduces = "quik"'))


def test_the_reduced_suite_s_own_mistake_and_the_whole_s_are_told_apart(tmp_path: Path) -> None:
    whole = written(tmp_path, '[[sweep]]\nname = "a"', "whole.toml")
    with pytest.raises(InvalidFileError, match=r"whole.toml: sweep\[0\].datasets: Field required"):
        load_suite(written(tmp_path, f'reduces = "{whole}"'))


# --- where data are missing ----------------------------------------------------------------------


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "")


def test_plan_and_run_leave_out_what_is_not_here_if_asked_to_and_say_so(
    no_data: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'reduces = "smoke"\n[every]\nmax_length = 8'
    suite = written(tmp_path, text)
    assert app.run(["run", suite]) == 2
    assert "data not here yet: digits, rotten-tomatoes" in capsys.readouterr().err
    assert app.run(["run", suite, "--skip-missing", "--only", "rotten-tomatoes"]) == 0
    said = capsys.readouterr().out
    assert "skipped  rotten-tomatoes: its data are not here" in said
    assert "`frugalbench fetch rotten-tomatoes` brings them" in said
    assert app.run(["plan", suite, "--skip-missing", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["data_left_out"] == ["digits", "rotten-tomatoes"]
    assert made["data_to_fetch"] == []
    assert made["points"] == []


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = os.environ.get(ROOT) or CHECKOUT.parent / "shared" / "data"
    if not (Path(chosen) / "snli").is_dir():
        pytest.skip(f"the mirror of real rows is not here: set {ROOT} to its folder")
    monkeypatch.setenv(ROOT, str(chosen))
    monkeypatch.setenv(VARIABLE, str(CHECKOUT / "tests" / "mirror" / "mirror.toml"))


@pytest.mark.data
def test_an_estimate_is_no_lower_bound_where_a_mirror_counts_the_rows(
    real: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "paper-budgetformer"]
    assert app.run([*words, "--skip-missing"]) == 0
    said = capsys.readouterr().out
    assert "roughly" in said
    assert "at least" not in said
    assert "not in the estimate" not in said
    assert app.run(words) == 0
    assert "rows are not known: yelp-review-full\n" in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.slow
def test_the_paper_s_suite_runs_on_real_rows(
    real: None, tmp_path: Path, own_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
reduces = "paper-budgetformer"
[every]
seeds = [0]
max_length = 8
train_fraction = 0.02
params = { d_model = 16, d_ff = 16 }
recipe = { epochs = 1, peak_lr = 3e-3 }
options = { latency = { batch_sizes = [1], n_processes = 1, max_pair_s = 0.1 } }
"""
    suite = written(tmp_path, text)
    asked = ["--only", "reviews", "--skip-missing", "--jobs", "1"]
    assert app.run(["run", suite, *asked]) == 0, capsys.readouterr()
    assert "skipped  yelp-review-full" in capsys.readouterr().out
    records = RecordStore(own_runs / "records").all()
    assert {record.status for record in records} == {"ok"}
    assert {record.point["dataset"] for record in records} == {"imdb"}
    labels = {variant.label for variant in load_suite("paper-budgetformer").sweeps[1].variants}
    models = {record.point["model"] for record in records if record.meter == "accuracy"}
    assert len(models) == len(labels)
    assert app.run(["report", suite]) == 0
    page = (own_runs / "reports" / "small" / "README.md").read_text(encoding="utf-8")
    assert "imdb (mirror: test 24,996 of 25,000)" in page
    assert DATASETS.get("yelp-review-full").name in page  # as missing
