"""What every model must do; a new models/NAME_config.py is tested without editing this file."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import models
from models.budgetformer_config import BudgetFormerConfig
from models.config import EncoderConfig, TrainedSummary
from models.interface import Classifier

FOLDER = Path(inspect.getfile(models)).parent
CONFIG_MODULES = sorted(path.stem for path in FOLDER.glob("*_config.py"))
SIZES: dict[str, Any] = {
    "depth": 2,
    "d_model": 12,
    "n_heads": 4,
    "dropout": 0.1,
    "vocab_size": 30,
    "n_classes": 3,
    "max_length": 10,
    "n_segments": 2,
}


def _config_class(module: str) -> type[EncoderConfig]:
    found = [
        item
        for _, item in inspect.getmembers(importlib.import_module(f"models.{module}"))
        if inspect.isclass(item)
        and issubclass(item, EncoderConfig)
        and item.__module__ == f"models.{module}"
    ]
    assert len(found) == 1, f"{module} must define one configuration class"
    return found[0]


CONFIGS = {module.removesuffix("_config"): _config_class(module) for module in CONFIG_MODULES}


def make_config(name: str, **changes: Any) -> EncoderConfig:
    sizes = SIZES | changes
    cls = CONFIGS[name]
    config = cls(**sizes)
    if cls.source == "none":
        return config
    source = BudgetFormerConfig(**sizes)
    lengths = [3, 5, 10]
    heads = [2] * source.depth
    return config.resolve(
        TrainedSummary(
            params=dataclasses.asdict(source),
            k_histogram=[[0, 1, 2] + [0] * (source.n_heads - 2)] * source.depth,
            mean_macs=sum(source.macs(n, heads).total for n in lengths) / len(lengths),
            lengths=lengths,
        )
    )


def make_model(config: EncoderConfig, seed: int = 0) -> Classifier:
    module, _, name = config.target.partition(":")
    torch.manual_seed(seed)
    model = getattr(importlib.import_module(module), name)(config)
    assert isinstance(model, Classifier)
    model.reseed(seed)
    return model


def make_batch(lengths: list[int], padded_to: int, seed: int = 1) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), padded_to)
    mask = torch.arange(padded_to) >= torch.tensor(lengths).unsqueeze(1)
    ids = torch.randint(1, SIZES["vocab_size"], shape, generator=generator)
    segments = torch.randint(0, SIZES["n_segments"], shape, generator=generator)
    return {
        "input_ids": ids.masked_fill(mask, 0),
        "key_padding_mask": mask,
        "segment_ids": segments.masked_fill(mask, 0),
    }


def logits(model: Classifier, batch: dict[str, Tensor], seed: int = 0) -> Tensor:
    model.reseed(seed)
    with torch.no_grad():
        found: Tensor = model(**batch).logits
        return found


def tolerance(config: EncoderConfig) -> float:
    """A multiple of float32's rounding unit: each value is a sum of at most so many products."""
    terms = config.d_model + config.width_of_ffn + config.n_heads * config.width_of_head
    return 2.0 * config.depth * (terms + config.max_length) * torch.finfo(torch.float32).eps


@pytest.fixture(params=sorted(CONFIGS))
def config(request: pytest.FixtureRequest) -> EncoderConfig:
    return make_config(request.param)


def test_the_six_models_of_the_first_suite_are_found() -> None:
    assert {
        "dense",
        "budgetformer",
        "random_trained",
        "random_at_test",
        "fewer_heads",
        "no_attention",
    } <= set(CONFIGS)


def test_configurations_import_without_torch_and_models_without_the_harness() -> None:
    imports = "; ".join(f"import models.{module}" for module in CONFIG_MODULES)
    code = f"import sys; {imports}; assert 'torch' not in sys.modules; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FOLDER.parent)
    for path in FOLDER.glob("*.py"):
        assert "import benchmarks" not in path.read_text()
        assert "from benchmarks" not in path.read_text()


def test_states_what_it_is(config: EncoderConfig) -> None:
    assert config.summary
    assert config.target.startswith("models.")
    declarable = type(config).declarable()
    assert declarable.keys() <= {f.name for f in dataclasses.fields(config)}
    assert dataclasses.MISSING not in declarable.values()
    assert hash(config) == hash(dataclasses.replace(config))


@pytest.mark.parametrize("training", [False, True])
def test_forward_and_backward_shapes(config: EncoderConfig, training: bool) -> None:
    model = make_model(config).train(training)
    output = model(**make_batch([7, 3, 1], 7))
    assert output.logits.shape == (3, config.n_classes)
    if output.heads is not None:
        shape = (3, config.depth, config.n_heads)
        assert output.heads.budget.shape == output.heads.k.shape == shape[:2]
        assert output.heads.scores.shape == output.heads.selected.shape == shape
        assert output.heads.k.dtype == torch.int64
        assert output.heads.selected.dtype == torch.bool
        assert torch.equal(output.heads.selected.sum(-1), output.heads.k)
        torch.testing.assert_close(output.heads.scores.sum(-1), torch.ones(shape[:2]))
    loss = output.logits.square().sum() + sum(model.auxiliary_losses(output).values())
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.shape == parameter.shape
    assert model.n_parameters() > 0


def test_every_parameter_learns_in_training(config: EncoderConfig) -> None:
    model = make_model(config).train()
    model.set_progress(0.3)
    output = model(**make_batch([10] * 12, 10))
    loss = output.logits.square().sum() + sum(model.auxiliary_losses(output).values())
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_more_padding_changes_no_value(config: EncoderConfig) -> None:
    model = make_model(config).eval()
    tight, loose = make_batch([6, 4, 2], 6), make_batch([6, 4, 2], 10)
    for name in ("input_ids", "segment_ids"):
        loose[name][:, :6] = tight[name]
        loose[name][:, 6:] = 5 if name == "input_ids" else 1  # whatever lies there is not read
    expected = logits(model, tight)
    assert (logits(model, loose) - expected).abs().max() <= tolerance(config) * max(
        1.0, expected.abs().max().item()
    )


def test_an_input_does_not_depend_on_its_batch(config: EncoderConfig) -> None:
    model = make_model(config).eval()
    batch = make_batch([8, 3, 8, 5], 8)
    together = logits(model, batch)
    if not torch.equal(together, logits(model, batch, seed=1)):
        pytest.skip("draws its heads at random, so an input alone gets other heads")
    for row in range(4):
        alone = logits(model, {name: value[row : row + 1] for name, value in batch.items()})
        assert (alone[0] - together[row]).abs().max() <= tolerance(config)


@pytest.mark.parametrize("plain", [False, True])
def test_an_input_of_padding_alone_gives_numbers(config: EncoderConfig, plain: bool) -> None:
    batch = make_batch([4, 0], 6)
    for training in (False, True):
        model = make_model(config).train(training)
        model.plain_attention = plain  # type: ignore[assignment]
        output = model(**batch)
        assert torch.isfinite(output.logits).all()
        output.logits.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_too_long_an_input_is_one_clear_error(config: EncoderConfig) -> None:
    with pytest.raises(
        ValueError, match="has 11 tokens, but the model has positions for max_length = 10"
    ):
        make_model(config)(**make_batch([11], 11))


def test_same_seed_same_bits(config: EncoderConfig) -> None:
    batch = make_batch([10, 6], 10)
    outputs = []
    for _ in range(2):
        model = make_model(config, seed=3).train()
        model.set_progress(0.2)
        outputs.append(model(**batch).logits)
    assert torch.equal(*outputs)
    assert not torch.equal(outputs[0], make_model(config, seed=4).train()(**batch).logits)


def test_eval_repeats_after_reseed(config: EncoderConfig) -> None:
    model = make_model(config).eval()
    batch = make_batch([9, 2, 5], 9)
    assert torch.equal(logits(model, batch), logits(model, batch))


def test_state_dict_round_trip(config: EncoderConfig) -> None:
    first, second = make_model(config, 0).eval(), make_model(config, 1).eval()
    batch = make_batch([9, 2, 5], 9)
    assert not torch.equal(logits(first, batch), logits(second, batch))
    second.load_state_dict(first.state_dict())
    assert torch.equal(logits(first, batch), logits(second, batch))
    assert torch.equal(logits(copy.deepcopy(first), batch), logits(second, batch))


def test_macs_are_positive_and_grow_with_length(config: EncoderConfig) -> None:
    costs = [config.macs(length) for length in range(1, 11)]
    for shorter, longer in itertools.pairwise(costs):
        assert 0 < shorter.total < longer.total
        assert 0 < shorter.elementwise < longer.elementwise


@pytest.mark.parametrize("length", [1, 7])
def test_macs_are_what_a_counter_sees(config: EncoderConfig, length: int) -> None:
    model = make_model(config).eval()
    # the counter knows nothing of the fused kernel
    model.plain_attention = True  # type: ignore[assignment]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        output = model(**make_batch([length], length))
    k = None if output.heads is None else output.heads.k[0].tolist()
    assert counter.get_total_flops() == 2 * config.macs(length, k).total
