"""The axes a sweep can vary: each a small pure function from a draft of a point to another.

An axis that sets model fields applies to the models that have these fields; for the others the
draft stays as it is, and the equal points that result are planned once. Beside the axes named here,
any field that a suite may declare of a model is one (`gate`, `rounding`, `entropy_weight` ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.planning.declared import LARGEST
from models.config import ModelConfig


@dataclass(frozen=True)
class Draft:
    """A point in the making: everything but data set, seed and source.

    Attributes:
        config: the model's configuration class.
        params: model fields set so far.
        recipe: recipe values set so far.
        max_length: tokens kept of each input.
        train_fraction: share of the training split used.
    """

    config: type[ModelConfig]
    params: Mapping[str, Any]
    recipe: Mapping[str, Any]
    max_length: int
    train_fraction: float

    def field(self, name: str) -> Any:
        """The value of a model field: as set, else its default."""
        return self.params.get(name, self.config.declarable().get(name))

    def with_params(self, **values: Any) -> Draft:
        """The same draft with these model fields set."""
        return replace(self, params={**self.params, **values})


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        name: the key in a suite's `axes`.
        summary: what it varies, in one line.
        apply: the pure function; raises ValueError with what would be right.
        fields: model fields that it sets; it applies to models that have all of them.
        training: it changes how a model is trained, so it means nothing for fresh weights.
    """

    name: str
    summary: str
    apply: Callable[[Draft, Any], Draft]
    fields: tuple[str, ...] = ()
    training: bool = False

    def applies(self, config: type[ModelConfig]) -> bool:
        """Whether `config` has every model field that this axis sets."""
        return set(self.fields) <= set(config.declarable())


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"must be a whole number of at least 1, not {value!r}")
    if value > LARGEST:
        raise ValueError(f"must be at most {LARGEST}, not {value}")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError(f"must be a number in (0, 1], not {value!r}")
    return float(value)


def depth(draft: Draft, value: Any) -> Draft:
    """Number of layers."""
    return draft.with_params(depth=_whole(value))


def d_model(draft: Draft, value: Any) -> Draft:
    """Width of the residual stream."""
    return draft.with_params(d_model=_whole(value))


def n_heads_fixed_d_model(draft: Draft, value: Any) -> Draft:
    """More heads, each narrower: d_model stays."""
    rest = {name: v for name, v in draft.params.items() if name != "head_dim"}
    return replace(draft, params={**rest, "n_heads": _whole(value)})


def n_heads_fixed_head_dim(draft: Draft, value: Any) -> Draft:
    """More heads of one width: d_model = n_heads * head_dim grows with them."""
    head_dim = draft.field("head_dim")
    if head_dim is None:
        width, heads = draft.field("d_model"), draft.field("n_heads")
        if heads < 1 or width % heads:
            raise ValueError(f"n_heads = {heads} does not divide d_model = {width}; give head_dim")
        head_dim = width // heads
    return draft.with_params(n_heads=_whole(value), d_model=_whole(value) * head_dim)


def budget_interval(draft: Draft, value: Any) -> Draft:
    """Where the budget s is free of penalty: [s_min, s_max]."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"must be a pair [s_min, s_max], not {value!r}")
    return draft.with_params(s_min=value[0], s_max=value[1])


def k_fraction(draft: Draft, value: Any) -> Draft:
    """A fixed number of heads, as a share of all: fixed_k = max(1, round(share * n_heads))."""
    return draft.with_params(fixed_k=max(1, round(_share(value) * draft.field("n_heads"))))


def max_length(draft: Draft, value: Any) -> Draft:
    """Tokens kept of each input."""
    return replace(draft, max_length=_whole(value))


def train_fraction(draft: Draft, value: Any) -> Draft:
    """Share of the training split used."""
    return replace(draft, train_fraction=_share(value))


def peak_lr(draft: Draft, value: Any) -> Draft:
    """Learning rate after warm-up."""
    return replace(draft, recipe={**draft.recipe, "peak_lr": value})


def epochs(draft: Draft, value: Any) -> Draft:
    """Passes over the training rows."""
    return replace(draft, recipe={**draft.recipe, "epochs": value})


SEED = "seed"
"""The axis that replaces a sweep's `seeds`; the expansion itself applies it."""


def _axis(apply: Callable[[Draft, Any], Draft], *model_fields: str, training: bool = False) -> Axis:
    summary = (apply.__doc__ or "").rstrip(".")
    return Axis(apply.__name__, summary, apply, model_fields, training)


# In the order of application: an axis may rest on what those before it have set.
AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        _axis(depth, "depth"),
        _axis(d_model, "d_model"),
        _axis(n_heads_fixed_d_model, "n_heads"),
        _axis(n_heads_fixed_head_dim, "n_heads", "d_model"),
        _axis(budget_interval, "s_min", "s_max"),
        _axis(k_fraction, "fixed_k"),
        _axis(max_length),
        _axis(train_fraction, training=True),
        _axis(peak_lr, training=True),
        _axis(epochs, training=True),
    )
}


def axis_called(name: str) -> Axis:
    """The axis of this name: one of `AXES`, or else the model field of this name as it is."""
    return AXES[name] if name in AXES else _field_axis(name)


def _field_axis(name: str) -> Axis:
    def apply(draft: Draft, value: Any) -> Draft:
        return draft.with_params(**{name: value})

    return Axis(name, f"The model field {name}", apply, (name,))


def in_order(names: Iterable[str]) -> list[str]:
    """These axes without the seed, in the order of application: `AXES` first, fields as given."""
    given = [name for name in names if name != SEED]
    return [name for name in AXES if name in given] + [n for n in given if n not in AXES]


def shared_fields(names: list[str]) -> list[tuple[str, str, str]]:
    """Pairs of axes that would set one model field, as (axis, axis, field)."""
    return [
        (one, other, name)
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        for name in axis_called(one).fields
        if name in axis_called(other).fields
    ]
