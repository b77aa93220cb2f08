from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import InvalidFileError, UsageError
from benchmarks.planning.suite import Suite, load_suite, parse_suite, suite_names

Change = Callable[[dict[str, Any]], object]

GOOD: dict[str, Any] = {
    "schema": 1,
    "title": "A test",
    "seeds": [0, 1],
    "recipe": {"epochs": 2},
    "options": {"latency": {"batch_sizes": [1]}},
    "sweep": [
        {
            "name": "main",
            "datasets": ["r8"],
            "max_length": 32,
            "meters": ["accuracy", "latency"],
            "baseline": "dense",
            "params": {"n_heads": 4},
            "axes": {"depth": [1, 2]},
            "variants": [
                {"label": "dense", "model": "dense"},
                {"label": "low", "model": "budgetformer", "params": {"s_max": 0.3}},
                {"label": "random", "model": "random-at-test", "source": "low"},
            ],
        }
    ],
}


def parse(change: Change = lambda _: None) -> Suite:
    values = copy.deepcopy(GOOD)
    change(values)
    return parse_suite(values, Path("my.toml"))


def sweep(**values: Any) -> Change:
    return lambda suite: suite["sweep"][0].update(values)


def variant(index: int, **values: Any) -> Change:
    return lambda suite: suite["sweep"][0]["variants"][index].update(values)


def test_a_good_suite_is_accepted() -> None:
    suite = parse()
    assert suite.name == "my"
    assert suite.sweeps[0].variant("low").params == {"s_max": 0.3}


@pytest.mark.parametrize("name", ["quick", "smoke", "tune"])
def test_the_suites_that_lie_here_are_valid(name: str) -> None:
    assert name in suite_names()
    assert load_suite(name).name == name


WRONG: list[tuple[Change, str]] = [
    (lambda s: s.update(schema=2), r"schema: .*1, not 2"),
    (lambda s: s.update(titel="x"), r"unknown key 'titel'; did you mean 'title'\?"),
    (lambda s: s.pop("title"), r"title: Field required"),
    (lambda s: s.update(seeds=[]), r"seeds: .*at least 1"),
    (lambda s: s.update(seeds=[0, 0]), r"seeds: seed 0 is given 2 times"),
    (lambda s: s.update(seeds=[True]), r"seeds\[0\]: .*not True"),
    (lambda s: s.update(recipe={"epoch": 1}), r"recipe: unknown recipe value 'epoch'; .*'epochs'"),
    (sweep(recipe={"epoch": 1}), r"sweep\[0\] 'main': recipe: unknown recipe value 'epoch'"),
    (sweep(recipe={"peak_lr": -1.0}), r"sweep\[0\] 'main': recipe: peak_lr must be positive"),
    (
        lambda s: s["sweep"][0]["variants"].append(
            {"label": "bert", "model": "bert", "params": {"pretrained": "minilm-16"}}
        ),
        r"'bert': params.pretrained: unknown weights 'minilm-16'; .*'minilm-l6'",
    ),
    (lambda s: s.update(recipe={"epochs": 0}), r"recipe: epochs must be positive, not 0"),
    (lambda s: s.update(recipe={"epochs": "3"}), r"recipe: epochs: .*integer, not '3'"),
    (lambda s: s.update(options={"latncy": {}}), r"options: unknown meter 'latncy'; .*'latency'"),
    (
        lambda s: s.update(options={"latency": {"batch_size": 1}}),
        r"options\.latency: unknown option of 'latency' 'batch_size'; did you mean 'batch_sizes'",
    ),
    (lambda s: s["sweep"].append(s["sweep"][0]), r"sweep: name main is given 2 times"),
    (sweep(options={"carbn": {}}), r"options: unknown meter 'carbn'; did you mean 'carbon'"),
    (sweep(axis={}), r"sweep\[0\]: unknown key 'axis'; did you mean 'axes'[^\n]*$"),
    (sweep(name="Main sweep"), r"sweep\[0\]\.name: .*not 'Main sweep'"),
    (sweep(max_length=0), r"sweep\[0\]\.max_length: .*not 0"),
    (sweep(train_fraction=1.5), r"sweep\[0\]\.train_fraction: .*not 1\.5"),
    (sweep(datasets=["r9"]), r"sweep\[0\] 'main': datasets: unknown data set 'r9'; .*'r8'"),
    (sweep(datasets=["random-tokens"]), r"'random-tokens' is generated.*trained = false"),
    (sweep(meters=["flop"]), r"meters: unknown meter 'flop'; did you mean 'flops'\?"),
    (sweep(baseline="dens"), r"baseline: unknown variant 'dens'; did you mean 'dense'\?"),
    (lambda s: s["sweep"][0].pop("baseline"), r"meters\[1\]: 'latency' measures pairs"),
    (sweep(trained=False), r"meters\[0\]: 'accuracy' says nothing about fresh weights"),
    (sweep(trained=False, seeds=[1]), r"seeds: means nothing where trained = false"),
    (sweep(trained=False, axes={"epochs": [1]}), r"axes\.epochs: means nothing where trained"),
    (sweep(axes={"dpeth": [1]}), r"axes: unknown axis 'dpeth'; did you mean 'depth'"),
    (sweep(axes={"image_sizes": [8]}), r"axes: unknown axis 'image_sizes'; .* 'image_size'\?"),
    (sweep(axes={"Image_Size": [8]}), r"axes: unknown axis 'Image_Size'; .* 'image_size'\?"),
    (sweep(axes={"max_length": [8]}, exclude=[{"imagesize": 8}]), r"\[0\]: .*mean 'image_size'\?"),
    (
        lambda s: s["sweep"][0].pop("max_length"),
        r"sweep\[0\]: image_size or max_length: Field required$",
    ),
    (
        lambda s: (sweep(axes={"image_size": [8]})(s), s["sweep"][0].pop("max_length")),
        r"sweep\[0\]: image_size or max_length: Field required, beside the axis too$",
    ),
    (
        lambda s: (sweep(axes=8)(s), s["sweep"][0].pop("max_length")),
        r"sweep\[0\]: image_size or max_length: Field required",
    ),
    (sweep(axes={"depth": []}), r"axes\.depth: .*at least 1"),
    (sweep(axes={"depth": [1, 1]}), r"axes\.depth: value 1 is given 2 times"),
    (sweep(axes={"seed": [-1]}), r"axes\.seed: a seed is a whole number of at least 0, not -1"),
    (
        sweep(axes={"d_model": [64], "n_heads_fixed_head_dim": [4]}),
        r"axes: 'd_model' and 'n_heads_fixed_head_dim' both set d_model",
    ),
    (sweep(axes={"budget_interval": [[0.1, 0.3]]}), r"params\.s_max: the axis 'budget_interval'"),
    (sweep(params={"n_head": 4}), r"params: unknown parameter 'n_head'; .*'n_heads'"),
    (sweep(params={"depth": 1.5}), r"params\.depth: .*integer.*not 1\.5"),
    (sweep(params={"vocab_size": 10}), r"params: unknown parameter 'vocab_size'"),
    (sweep(exclude=[{"deth": 1}]), r"exclude\[0\]: unknown axis or place 'deth'; .*'depth'"),
    (sweep(exclude=[{"depth": 7}]), r"exclude\[0\]\.depth: 7 is no value of this axis \(1, 2\)"),
    (sweep(exclude=[{}]), r"exclude\[0\]: is empty"),
    (sweep(exclude=[{"seed": 7}]), r"exclude\[0\]\.seed: unknown seed '7'\. Known: 0, 1"),
    (sweep(exclude=[{"variant": "x"}]), r"exclude\[0\]\.variant: unknown variant 'x'"),
    (sweep(skip=[{"match": {"depth": 2}}]), r"skip\[0\]\.reason: Field required"),
    (sweep(skip=[{"match": {"dataset": "r"}, "reason": "-"}]), r"skip\[0\]\.dataset: unknown"),
    (variant(0, label="low"), r"variants: label low is given 2 times"),
    (variant(0, modl="x"), r"sweep\[0\]\.variants\[0\]: unknown key 'modl'; did you mean 'model'"),
    (variant(0, model="dens"), r"variants\[0\] 'dense': model: unknown model 'dens'; .*'dense'"),
    (variant(0, params={"s_min": 0.1}), r"unknown parameter of 'dense' 's_min'"),
    (variant(0, source="low"), r"variants\[0\] 'dense': source: model 'dense' depends on no other"),
    (variant(2, source="lo"), r"variants\[2\] 'random': source: unknown variant 'lo'; .*'low'"),
    (variant(2, source=None), r"takes its weights from a trained model; give the label of one"),
    (
        lambda s: (variant(2, source="other")(s), s["sweep"][0]["variants"].append(
            {"label": "other", "model": "fewer-heads", "source": "random"})),
        r"source: depends on itself: random -> other -> random",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[m for _, m in WRONG])
def test_each_mistake_has_one_message_with_file_and_key(change: Change, message: str) -> None:
    with pytest.raises(InvalidFileError, match=message) as caught:
        parse(change)
    assert all(line.startswith("my.toml: ") for line in str(caught.value).splitlines())


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidFileError) as caught:
        parse(sweep(datasets=["r9"], baseline="nobody"))
    assert len(str(caught.value).splitlines()) == 2


def test_an_unknown_suite_suggests_its_neighbours() -> None:
    with pytest.raises(UsageError, match=r"unknown suite 'quik'; did you mean 'quick'\?"):
        load_suite("quik")


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(InvalidFileError, match=r"mine\.toml: cannot be read: No such file"):
        load_suite(str(path))
    path.write_text("title = \n")
    with pytest.raises(InvalidFileError, match=r"mine\.toml: is not valid TOML: .*line 1"):
        load_suite(str(path))


def test_a_sweep_s_options_lie_over_the_suite_s() -> None:
    suite = parse(sweep(options={"latency": {"blocks": 2}, "carbon": {"window_s": 1}}))
    assert suite.options_for("main", "latency") == {"batch_sizes": [1], "blocks": 2}
    assert suite.options_for("main", "carbon") == {"window_s": 1}
    assert suite.options_for("main", "flops") == {}
