"""What every configuration says of its model, and what it refuses."""

from __future__ import annotations

import dataclasses
import inspect
import math
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
import torch

import models
from benchmarks.catalog import MODELS

FOLDER = Path(inspect.getfile(models)).parent


def test_the_models_of_the_shipped_suites_are_found() -> None:
    assert {
        "dense",
        "budgetformer",
        "random-trained",
        "random-at-test",
        "fewer-heads",
        "no-attention",
        "bert",
        "bert-hybrid",
        "vit",
        "avit",
        "vit-hybrid",
    } <= set(MODELS.names())


def test_hybrids_are_tested_on_every_kind_of_teacher(all_cases: list[Any]) -> None:
    made_of = {(c.model_name, type(c.source).__name__, c.config.halts) for c in all_cases
               if c.model_name == "vit-hybrid"}  # fmt: skip
    assert made_of == {("vit-hybrid", "ViTConfig", False), ("vit-hybrid", "AViTConfig", True)}
    texts = {type(c.source).__name__ for c in all_cases if c.model_name == "bert-hybrid"}
    assert texts == {"BertConfig"}, "its class has a teacher's head budgets nowhere to put"


def test_configurations_import_without_torch_and_models_without_the_harness() -> None:
    modules = {MODELS.get(name).__module__ for name in MODELS.names()}
    imports = "; ".join(f"import {module}" for module in sorted(modules))
    code = f"import sys; {imports}; assert not {{'torch', 'numpy', 'pandas'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FOLDER.parent)
    for path in FOLDER.rglob("*.py"):
        assert "import benchmarks" not in path.read_text()
        assert "from benchmarks" not in path.read_text()


def test_states_what_it_is(case: Any) -> None:
    config = case.config
    assert config.summary
    assert ":" in config.target
    declarable = type(config).declarable()
    assert declarable.keys() <= {f.name for f in dataclasses.fields(config)}
    assert dataclasses.MISSING not in declarable.values()
    assert hash(config) == hash(dataclasses.replace(config))
    assert config.training_epochs(7) >= 0


def refused(case: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"\b{name}\b") as raised:
        case.unresolved(**{name: value})
    assert str(value) in str(raised.value)


def test_sizes_below_one_are_one_clear_error(plain_case: Any) -> None:
    config = type(plain_case.config)
    known = {f.name for f in dataclasses.fields(config)}
    sizes = {"depth", "d_model", "n_heads", "head_dim", "d_ff", "n_classes", "max_length",
             "vocab_size", "n_segments", "patch_size", "channels"}  # fmt: skip
    for name in sizes & known:
        refused(plain_case, name, 0)
        refused(plain_case, name, -3)


def test_values_out_of_range_are_one_clear_error(plain_case: Any) -> None:
    for value in (-0.1, 1.0, math.nan):
        refused(plain_case, "dropout", value)
    config = type(plain_case.config)
    types = typing.get_type_hints(config)
    for name in config.declarable():
        if typing.get_origin(types[name]) is typing.Literal:
            refused(plain_case, name, "nonsense")
    if "n_heads" in config.declarable():
        refused(plain_case, "n_heads", 5)
    if config.inputs == "image":
        refused(plain_case, "patch_size", 3)


def test_what_cannot_start_from_pretrained_weights_says_so(plain_case: Any) -> None:
    model = plain_case.model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"cannot start from pretrained weights|weights have no"):
        model.load_pretrained({})
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_source_that_lacks_what_is_taken_is_one_clear_error(dependent_case: Any) -> None:
    config = dependent_case.unresolved()
    lacking: dict[str, dict[str, Any]] = {
        "budgets": {"k_histogram": None},
        "macs": {"lengths": []},
        "teacher": {"params": {}},
    }
    if config.source not in lacking:
        pytest.skip("takes whatever the source is")
    with pytest.raises(ValueError, match=r"source|teacher"):
        config.resolve(dependent_case.summary(**lacking[config.source]))


def test_resolving_twice_is_resolving_once(dependent_case: Any) -> None:
    config = dependent_case.config
    assert config.resolve(dependent_case.summary()) == config


def test_its_source_s_weights_fit(dependent_case: Any) -> None:
    config, source = dependent_case.config, dependent_case.source
    given = dependent_case.trained(source).state_dict()
    model = dependent_case.model()
    if config.source == "weights":
        model.load_state_dict(given)
        return
    if config.source != "teacher":
        pytest.skip("takes no weights")
    model.load_teacher(given)
    new = {id(parameter) for parameter in model.new_parameters()}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        assert id(tensor) in new or torch.equal(tensor, given[name]), name
    with pytest.raises(ValueError, match="the weights have no"):
        model.load_teacher({})


def test_a_model_that_starts_from_another_takes_its_weights(plain_case: Any) -> None:
    if plain_case.config.base == "none":
        pytest.skip("starts from fresh weights")
    fitting = 0
    for other in plain_case.others():
        model, given = plain_case.model(), plain_case.trained(other).state_dict()
        try:
            model.start_from(given)
        except ValueError as error:
            assert "weights" in str(error)  # noqa: PT017
            continue
        fitting += 1
        own = model.state_dict()
        assert all(torch.equal(own[name], tensor) for name, tensor in given.items())
    assert fitting
