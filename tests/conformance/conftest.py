"""Every registered model as cases to test, found by its configuration class alone.

A model that takes something from a trained one is resolved from one that fits; a hybrid is made of
each teacher with each kind of mixer. An outside package's models are cases too.
"""

from __future__ import annotations

import copy
import functools
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.catalog import MODELS
from benchmarks.data.batches import AnyBatch, Batch, ImageBatch
from benchmarks.training.build import build_model
from models.config import ModelConfig, TrainedSummary
from models.interface import Classifier, ClassifierOutput
from models.mixers.names import KINDS

SIZES: Mapping[str, Mapping[str, Any]] = {
    "text": {"depth": 2, "max_length": 10, "vocab_size": 30, "n_segments": 2},
    "image": {"depth": 3, "max_length": 8, "patch_size": 2, "channels": 3},
}
COMMON: Mapping[str, Any] = {"d_model": 16, "n_heads": 4, "dropout": 0.1, "n_classes": 3}


@dataclass(frozen=True)
class Case:
    """One model in one configuration.

    Attributes:
        model_name: its name in the registry.
        choice: what else was chosen, in words.
        config: tiny, and resolved where it depends on another model.
        source: the configuration of the model that it was resolved from.
    """

    model_name: str
    choice: str
    config: Any
    source: ModelConfig | None = None

    @property
    def name(self) -> str:
        return f"{self.model_name}:{self.choice}" if self.choice else self.model_name

    @property
    def reads_texts(self) -> bool:
        return bool(self.config.inputs == "text")

    def model(self) -> Classifier:
        """With weights that matter; one that halts tokens halts some of them."""
        return copy.deepcopy(made(self.config))

    def fresh(self, seed: int) -> Classifier:
        """As it is before it is trained, or calibrated."""
        return build_model(self.config, seed)

    def batch(self, n: int, seed: int = 1) -> AnyBatch:
        """Texts of several lengths, or images."""
        if not self.reads_texts:
            return images(self.config, n, seed)
        longest = self.config.max_length
        lengths = [longest, 3, longest - 2, 5, longest, 1]
        return self.texts([lengths[i % len(lengths)] for i in range(n)], seed=seed)

    def texts(self, lengths: list[int], padded_to: int | None = None, seed: int = 1) -> Batch:
        generator = torch.Generator().manual_seed(seed)
        shape = (len(lengths), padded_to or max(lengths))
        mask = torch.arange(shape[1]) >= torch.tensor(lengths).unsqueeze(1)
        ids = torch.randint(1, self.config.vocab_size, shape, generator=generator)
        segments = torch.randint(0, self.config.n_segments, shape, generator=generator)
        return Batch(
            ids.masked_fill(mask, 0), mask, segments.masked_fill(mask, 0), *labels(len(lengths))
        )

    def lengths(self) -> list[int]:
        """Those that an input can have, ascending."""
        step = getattr(self.config, "patch_size", 1)
        return list(range(step, self.config.max_length + 1, step))

    def tolerance(self, logits: Tensor) -> float:
        """A multiple of float32's rounding unit: each value is a sum of at most so many products."""
        config = self.config
        terms = config.d_model + config.width_of_ffn + config.n_heads * config.width_of_head
        terms += getattr(config, "n_tokens", config.max_length)
        rounding = 2.0 * config.depth * terms * torch.finfo(torch.float32).eps
        return float(rounding * max(1.0, logits.abs().max().item()))

    def run(self, model: Classifier, batch: AnyBatch, seed: int = 0) -> ClassifierOutput:
        """One pass without gradients, the model's own random numbers restarted."""
        model.reseed(seed)
        with torch.no_grad():
            output = model(*batch.inputs)
        assert isinstance(output, ClassifierOutput)
        return output

    def loss(self, model: Classifier, output: ClassifierOutput) -> Tensor:
        """Something that depends on all logits, and what the model adds to it."""
        added = sum(model.auxiliary_losses(output).values())
        return output.logits.square().sum() + added

    def is_random(self, model: Classifier) -> bool:
        """Whether it draws random numbers at inference, so that an input alone gets others."""
        one, other = (self.run(model, self.batch(6), seed).logits for seed in (0, 1))
        return not torch.equal(one, other)

    def others(self) -> list[ModelConfig]:
        """The models that depend on no other and read what this one reads."""
        return list(standing_alone(self.model_name))

    def trained(self, config: ModelConfig) -> Classifier:
        """Another model, as if it were trained."""
        return copy.deepcopy(made(config))

    def unresolved(self, **declared: Any) -> Any:
        return tiny(self.model_name, **declared)

    def summary(self, **changes: Any) -> TrainedSummary:
        """Of its source."""
        assert self.source is not None
        return summary_of(self.source, **changes)


def labels(n: int) -> tuple[Tensor, Tensor]:
    return torch.arange(n) % COMMON["n_classes"], torch.arange(n)


def images(config: Any, n: int, seed: int) -> ImageBatch:
    shape = (n, config.channels, config.image_size, config.image_size)
    pixels = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return ImageBatch(pixels, *labels(n))


@functools.cache
def made(config: Any) -> Classifier:
    model: Any = build_model(config, seed=0)
    if config.inputs == "image":
        stir(model)
    if hasattr(model, "calibrate"):
        model.calibrate([images(config, 8, seed=9).pixel_values])
    assert isinstance(model, Classifier)
    return model


@torch.no_grad()
def stir(model: Classifier) -> None:
    """Away from weights so small, or so alike, that a mistake in mixing tokens would not be seen."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))


def tiny(name: str, **declared: Any) -> Any:
    """A model's configuration before it is resolved."""
    config = MODELS.get(name)
    known = {f.name for f in fields(config) if f.init}
    given = {**COMMON, **SIZES[config.inputs], **declared}
    return config(**{key: value for key, value in given.items() if key in known})


def summary_of(trained: ModelConfig, **changes: Any) -> TrainedSummary:
    """What an artifact would say of it, as read from its file; two heads a layer at most."""
    lengths = [3, 5, 10] if trained.inputs == "text" else [trained.max_length] * 3
    two = [2] * trained.depth
    values: dict[str, Any] = {
        "params": json.loads(json.dumps(asdict(trained))),
        "k_histogram": [[0, 1, 2] + [0] * (trained.n_heads - 2)] * trained.depth,
        "mean_macs": sum(trained.macs(n, two).total for n in lengths) / len(lengths),
        "lengths": lengths,
    }
    return TrainedSummary(**values | changes)


def standing_alone(name: str) -> Iterator[ModelConfig]:
    for other in MODELS.names():
        config = MODELS.get(other)
        if config.source == "none" and config.inputs == MODELS.get(name).inputs:
            yield tiny(other)


def cases_of(name: str) -> Iterator[Case]:
    config = MODELS.get(name)
    if config.source == "none":
        yield Case(name, "", tiny(name))
        for option, value in choices(config):
            yield Case(name, f"{option}={value}", tiny(name, **{option: value}))
    elif config.source == "teacher":
        yield from students(name)
    else:
        # the nearest that its class is made of, or any
        alone = {type(other): other for other in standing_alone(name)}
        nearest = next((kind for kind in config.__mro__ if kind in alone), next(iter(alone)))
        source = alone[nearest]
        yield Case(name, "", tiny(name).resolve(summary_of(source)), source)


def students(name: str) -> Iterator[Case]:
    """A hybrid of each teacher that it accepts, with each kind of mixer in its outer layers."""
    for teacher in standing_alone(name):
        for kind in KINDS:
            wanted = tiny(name, replace=(0, teacher.depth - 1), mixer=kind)
            try:
                student = wanted.resolve(summary_of(teacher))
            except ValueError as error:
                if "the teacher is no such model" not in str(error):
                    raise
                break
            yield Case(name, f"{kind} in {type(teacher).__name__}", student, teacher)


def choices(config: type[ModelConfig]) -> Iterator[tuple[str, Any]]:
    """Every value but the default of the fields that have a few values only."""
    types = typing.get_type_hints(config)
    for name, default in config.declarable().items():
        kind = types[name]
        values = (True, False) if kind is bool else typing.get_args(kind)
        if kind is bool or typing.get_origin(kind) is typing.Literal:
            yield from ((name, value) for value in values if value != default)


@pytest.fixture(autouse=True)
def own_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One folder for all of these many tests: none of them writes anything there."""
    runs = tmp_path_factory.getbasetemp() / "runs"
    monkeypatch.setenv("FRUGALBENCH_RUNS", str(runs))
    return runs


@pytest.fixture
def all_cases() -> list[Case]:
    return CASES


CASES = [case for name in MODELS.names() for case in cases_of(name)]
KINDS_OF_CASE = {
    "case": CASES,
    "plain_case": [case for case in CASES if not case.choice],
    "text_case": [case for case in CASES if case.reads_texts],
    "image_case": [case for case in CASES if not case.reads_texts],
    "dependent_case": [case for case in CASES if case.source is not None],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument, found in KINDS_OF_CASE.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, found, ids=lambda case: case.name)
