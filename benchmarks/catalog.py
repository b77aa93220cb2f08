"""The registries: models, data sets, pretrained weights, meters and engines."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import InvalidFileError
from benchmarks.paths import CHECKOUT, resource_dir
from benchmarks.registry import Entry, Registry

if TYPE_CHECKING:
    from benchmarks.data.card import Card
    from benchmarks.data.weights import WeightsCard
    from benchmarks.meters.interface import MeterSpec
    from models.config import ModelConfig

_SUFFIX = "_config"


def _models() -> Iterator[Entry[type[ModelConfig]]]:
    for path in sorted((CHECKOUT / "models").glob(f"*{_SUFFIX}.py")):
        name = path.stem.removesuffix(_SUFFIX).replace("_", "-")
        module = f"models.{path.stem}"
        load = functools.partial(config_class, module)
        yield Entry(name, load, f"models/{path.name}", module)


def config_class(module: str) -> type[ModelConfig]:
    """The one ModelConfig subclass that `module` defines, with its `target` set.

    Raises:
        InvalidFileError: the module cannot be imported, or defines none, or several.
    """
    from models.config import ModelConfig

    try:
        loaded = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a file in the making may fail in any way
        raise InvalidFileError(
            f"{module.replace('.', '/')}.py cannot be imported: {type(error).__name__}: {error}"
        ) from error
    found = [
        value
        for _, value in inspect.getmembers(loaded, inspect.isclass)
        if issubclass(value, ModelConfig) and value.__module__ == module and value.target
    ]
    if len(found) != 1:
        names = ", ".join(c.__name__ for c in found) or "none"
        raise InvalidFileError(
            f"{module.replace('.', '/')}.py must define exactly one ModelConfig subclass "
            f"that sets `target`; found {names}"
        )
    return found[0]


def _accept_model(value: Any) -> type[ModelConfig]:
    from models.config import ModelConfig

    if not (inspect.isclass(value) and issubclass(value, ModelConfig) and value.target):
        raise TypeError(f"expected an ModelConfig subclass that sets `target`, found {value!r}")
    return value


def _datasets() -> Iterator[Entry[Card]]:
    for path in sorted(resource_dir("datasets").glob("*.toml")):
        yield Entry(path.stem, functools.partial(_card, path), f"datasets/{path.name}", path)


def _card(path: Path) -> Card:
    from benchmarks.data.card import load_card

    return load_card(path)


def _accept_card(value: Any) -> Card:
    if not isinstance(value, (str, Path)):
        raise TypeError(f"expected the path of a card (TOML), found {value!r}")
    return _card(Path(value))


def _weights() -> Iterator[Entry[WeightsCard]]:
    for path in sorted(resource_dir("weights").glob("*.toml")):
        yield Entry(path.stem, functools.partial(_weights_card, path), f"weights/{path.name}", path)


def _weights_card(path: Path) -> WeightsCard:
    from benchmarks.data.weights import load_weights_card

    return load_weights_card(path)


def _accept_weights_card(value: Any) -> WeightsCard:
    if not isinstance(value, (str, Path)):
        raise TypeError(f"expected the path of a card (TOML), found {value!r}")
    return _weights_card(Path(value))


def _meters() -> Iterator[Entry[MeterSpec]]:
    from benchmarks.meters.specs import SPECS

    for spec in SPECS:
        yield Entry(spec.name, functools.partial(_same, spec), "benchmarks/meters", spec)


def _same(spec: MeterSpec) -> MeterSpec:
    return spec


def _accept_meter(value: Any) -> MeterSpec:
    from benchmarks.meters.interface import MeterSpec

    if not isinstance(value, MeterSpec):
        raise TypeError(f"expected a MeterSpec, found {value!r}")
    return value


def _engines() -> Iterator[Entry[type[Any]]]:
    target = "benchmarks.running.local:LocalEngine"
    yield Entry("local", functools.partial(load_target, target), "benchmarks/running", target)


def load_target(target: str) -> Any:
    """The object that `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


MODELS: Registry[type[ModelConfig]] = Registry(
    "model", group="frugalbench.models", discover=_models, accept=_accept_model
)
"""Model name to torch-free configuration class; the name is the file's, with hyphens."""

DATASETS: Registry[Card] = Registry(
    "data set", group="frugalbench.datasets", discover=_datasets, accept=_accept_card
)
"""Data-set name to card. An outside package's entry point holds the path of a card file."""

WEIGHTS: Registry[WeightsCard] = Registry(
    "weights", group="frugalbench.weights", discover=_weights, accept=_accept_weights_card
)
"""Name of pretrained weights to card. An outside package's entry point holds the path of a card file."""

METERS: Registry[MeterSpec] = Registry(
    "meter", group="frugalbench.meters", discover=_meters, accept=_accept_meter
)
"""Meter name to its description."""

ENGINES: Registry[type[Any]] = Registry("engine", group="frugalbench.engines", discover=_engines)
"""Engine name to the class that runs tasks."""
