"""From a point's declared values to a configuration and a freshly initialised model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import torch

from benchmarks.errors import UsageError, suggest
from benchmarks.training.pretrained import pretrained_state

if TYPE_CHECKING:
    from benchmarks.data.load import AnyData
    from benchmarks.planning.points import Point
    from models.config import ModelConfig, TrainedSummary
    from models.interface import Classifier


def build_config(point: Point, data: AnyData, source: TrainedSummary | None = None) -> ModelConfig:
    """The point's full configuration.

    Args:
        point: declares the model and its parameters.
        data: gives number of classes and size of the largest input; of texts also vocabulary size
            and number of segments, of images the number of channels.
        source: what the trained source says of itself, for a model that depends on one.

    Raises:
        UsageError: parameters that the model does not have or cannot take, or a source missing.
    """
    from benchmarks.catalog import MODELS

    config_class = MODELS.get(point.model)
    where = f"model '{point.model}', point '{point.label or point.point_id}'"
    known = config_class.declarable()
    for name in point.params:
        if name not in known:
            raise UsageError(f"{where}: {suggest(name, known, kind='parameter')}")
    of_data = ("vocab_size", "n_segments") if config_class.inputs == "text" else ("channels",)
    if not all(hasattr(data, name) for name in of_data):
        raise UsageError(
            f"{where}: it reads {config_class.inputs}s, and data set '{data.card.name}' holds none"
        )
    try:
        config = config_class(
            **point.params,
            n_classes=len(data.classes),
            max_length=data.max_length,
            **{name: getattr(data, name) for name in of_data},
        )
        # a hybrid with fresh weights needs no teacher
        fresh = config_class.source == "teacher" and not point.trained
        if config_class.source == "none" or fresh:
            return config
        if source is None:
            raise UsageError(
                f"{where}: this model takes its {config_class.source} from a trained source, "
                "and this point has none"
            )
        return config.resolve(source)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from error


def build_model(config: ModelConfig, seed: int, *, pretrained: bool = True) -> Classifier:
    """A fresh model whose weights depend on `config` and `seed` alone.

    Where the configuration names pretrained weights, it has these, and the rest is fresh.

    Args:
        config: full configuration.
        seed: of the initialisation.
        pretrained: False leaves them out, for a model whose weights are filled in next.

    Raises:
        UsageError: no such weights, or other shapes than the model's.
        DataError: their package is missing, altered or unreadable.
    """
    module, _, name = config.target.partition(":")
    model_class = getattr(importlib.import_module(module), name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Classifier = model_class(config)
    start = getattr(config, "pretrained", None)
    if pretrained and start is not None:
        try:
            model.load_pretrained(pretrained_state(start))
        except ValueError as error:
            raise UsageError(f"pretrained = '{start}': {error}") from error
    model.reseed(seed)
    return model
