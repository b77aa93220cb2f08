"""A point: one fully determined combination, and the identity that joins it across machines.

An identity hashes declared values only, and of these only the ones that differ from the default,
so adding a field with a default changes no identity. For that to stay true, **a default is never
changed**: a new behaviour gets a new field or a new name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.canonical import digest

ID_LENGTH = 16


@dataclass(frozen=True)
class Point:
    """One model on one data set under one recipe with one seed.

    Attributes:
        model: registry name of the model.
        params: declared model parameters that differ from the model's defaults.
        dataset: name of the card.
        max_length: tokens kept of each input.
        train_fraction: share of the training split used.
        recipe: declared recipe values that differ from `Recipe`'s defaults; None: never trained
            (cost sweeps use fresh weights).
        seed: seed of initialisation, order, dropout and noise.
        source: the point this one depends on (`ModelConfig.source` says for what).
        base: a second one, whose weights it starts from (`ModelConfig.base`).
        label: the suite's short name for the model variant; not part of the identity.
    """

    model: str
    params: Mapping[str, Any]
    dataset: str
    max_length: int
    train_fraction: float = 1.0
    recipe: Mapping[str, Any] | None = field(default_factory=dict)
    seed: int = 0
    source: Point | None = None
    base: Point | None = None
    label: str = field(default="", compare=False)

    @property
    def trained(self) -> bool:
        """Whether this point has (or shares) trained weights."""
        return self.recipe is not None

    @property
    def pretrained(self) -> str | None:
        """Name of the weights that it starts from."""
        return self.params.get("pretrained")

    @property
    def vocabulary(self) -> str | None:
        """Name of the weights whose vocabulary its texts are encoded in; None: the data set's own."""
        from benchmarks.catalog import MODELS

        config = MODELS.get(self.model)
        if config.inputs == "image":
            return None
        if config.source == "teacher" and self.source is not None:
            return self.source.vocabulary
        return self.pretrained

    @property
    def needs(self) -> tuple[Point, ...]:
        """The points that have to be trained before this one."""
        return tuple(point for point in (self.source, self.base) if point is not None)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What decides the inputs that it is measured on, and the rows that it learns from."""
        values = (self.dataset, self.max_length, self.train_fraction, self.vocabulary)
        return tuple(map(str, values))

    def declared(self, *, with_seed: bool = True) -> dict[str, Any]:
        """What the identity hashes; also what a record carries, so that it stands on its own."""
        values: dict[str, Any] = {
            "model": self.model,
            "params": dict(self.params),
            "dataset": self.dataset,
            "max_length": self.max_length,
            "recipe": None if self.recipe is None else dict(self.recipe),
        }
        if self.train_fraction != 1.0:
            values["train_fraction"] = self.train_fraction
        if self.source is not None:
            values["source"] = self.source.declared(with_seed=with_seed)
        if self.base is not None:
            values["base"] = self.base.declared(with_seed=with_seed)
        if with_seed:
            values["seed"] = self.seed
        return values

    @property
    def point_id(self) -> str:
        """Identity of this point; the same on every machine and commit."""
        return digest(self.declared(), length=ID_LENGTH)

    @property
    def group_id(self) -> str:
        """Identity without the seed: the points that are averaged over."""
        return digest(self.declared(with_seed=False), length=ID_LENGTH)

    @classmethod
    def from_declared(cls, values: Mapping[str, Any], label: str = "") -> Point:
        """The inverse of `declared()`, for `show` and for records read from disk."""
        source, base = values.get("source"), values.get("base")
        return cls(
            model=values["model"],
            params=dict(values["params"]),
            dataset=values["dataset"],
            max_length=values["max_length"],
            train_fraction=values.get("train_fraction", 1.0),
            recipe=None if values["recipe"] is None else dict(values["recipe"]),
            seed=values["seed"],
            source=None if source is None else cls.from_declared(source),
            base=None if base is None else cls.from_declared(base),
            label=label,
        )
