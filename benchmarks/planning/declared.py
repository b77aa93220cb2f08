"""Declared values: checked against the type that has the field, and cut to what is not default."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from benchmarks.canonical import canonical_json
from benchmarks.catalog import MODELS
from benchmarks.toml_files import in_toml_words
from benchmarks.training.recipe import Recipe
from models.config import ModelConfig, TrainedSummary
from models.distillation import require_fit

if TYPE_CHECKING:
    from benchmarks.planning.points import Point

LARGEST = 2**20
"""Largest whole number that a suite may give: beyond it, no model fits any machine."""
MOST_SAMPLES = 2**40
"""The same for the field `samples`: inputs seen in a training take time, but no memory."""
LARGEST_SEED = 2**32 - 1
"""Largest seed: every random generator here takes it."""
DEEPEST = 1024
"""Most layers that a suite may ask for."""
LARGEST_SIDE = 4096
"""Longest side of images, in pixels: 16 million of them are more than any set here has."""
SIZES = (
    "depth",
    "d_model",
    "n_heads",
    "width_of_head",
    "width_of_ffn",
    "patch_size",
    "layer_scale",
)
"""What a model and its base must have alike; of other heads some weights have the same shapes."""

_ADAPTERS: dict[tuple[type[Any], str], TypeAdapter[Any]] = {}


def checked(owner: type[Any], name: str, value: Any) -> Any:
    """`value` as the dataclass field `owner.name` takes it: lists as tuples, 1.0 as 1 for an int.

    Raises:
        ValueError: the field cannot hold it; the message says what would be right.
    """
    try:
        text = canonical_json(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {value!r} is no plain value") from error
    largest = MOST_SAMPLES if name == "samples" else LARGEST
    if isinstance(value, int) and abs(value) > largest:
        raise ValueError(f"{name}: {value} is beyond {largest}, the largest number allowed here")
    try:
        return _adapter(owner, name).validate_json(text, strict=True)
    except ValidationError as error:
        said = in_toml_words(error.errors()[0]["msg"])
        raise ValueError(f"{name}: {said}, not {value!r}") from error


def _adapter(owner: type[Any], name: str) -> TypeAdapter[Any]:
    if (owner, name) not in _ADAPTERS:
        _ADAPTERS[owner, name] = TypeAdapter(get_type_hints(owner)[name])
    return _ADAPTERS[owner, name]


def declared_params(config: type[ModelConfig], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from the model's defaults, tuples as lists, in sorted order.

    Raises:
        ValueError: a value that its field cannot hold.
    """
    return _differing(config, values, config.declarable())


def declared_recipe(values: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe values that differ from the defaults, in sorted order.

    Raises:
        ValueError: a value out of range or of the wrong type.
    """
    defaults = dataclasses.asdict(Recipe())
    kept = _differing(Recipe, values, defaults)
    Recipe(**kept)
    return kept


def _differing(
    owner: type[Any], values: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in sorted(values):
        value = checked(owner, name, values[name])
        if value != defaults[name]:
            kept[name] = json.loads(canonical_json(value))
    return kept


def configuration(
    config: type[ModelConfig], params: Mapping[str, Any], max_length: int
) -> ModelConfig:
    """The model's configuration before its data set and its source are known.

    Raises:
        ValueError: the values do not fit together.
    """
    values = {name: checked(config, name, value) for name, value in params.items()}
    if values.get("depth", 0) > DEEPEST:
        raise ValueError(f"depth must be at most {DEEPEST}, not {values['depth']}")
    if config.inputs == "image" and max_length > LARGEST_SIDE:
        raise ValueError(f"image_size must be at most {LARGEST_SIDE} pixels, not {max_length}")
    return config(**values, max_length=max_length)


def configuration_of(point: Point) -> ModelConfig:
    """A point's configuration before its data set is known; a student's as it is on its teacher.

    Raises:
        ValueError: the values do not fit together, or not to the teacher's or the base's.
    """
    kind = MODELS.get(point.model)
    made = configuration(kind, point.params, point.max_length)
    if point.base is not None:
        _require_base(made, point.base)
    if kind.source != "teacher":
        return made
    if point.source is None:
        require_fit(made)
        return made
    teacher = dataclasses.asdict(configuration_of(point.source))
    return made.resolve(TrainedSummary(params=teacher, k_histogram=None, mean_macs=0.0))


def _require_base(config: ModelConfig, point: Point) -> None:
    """Raises ValueError if the weights of this base are not those that the model starts from."""
    kind = MODELS.get(point.model)
    if kind.source != "none" or kind.base != "none":
        raise ValueError(
            f"base: '{point.model}' is built on another model itself; give it one that is trained "
            "from scratch or from pretrained weights"
        )
    base = configuration_of(point)
    for name in SIZES:
        own, other = getattr(config, name, None), getattr(base, name, None)
        if own != other:
            field = {"width_of_head": "head_dim", "width_of_ffn": "d_ff"}.get(name, name)
            raise ValueError(
                f"{field} = {own}, but the base '{point.label}' has {other}; give both the same"
            )
