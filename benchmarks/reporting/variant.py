"""One variant of a suite in one setting: its points, and what kind of model it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.planning.expand import PlannedPoint


@dataclass(frozen=True)
class Variant:
    """One model variant in one setting; its points differ in the seed alone.

    Attributes:
        sweep: the sweep that declares it.
        label: the suite's short name.
        dataset: name of the card.
        axes: the sweep's axis values at this setting, without the seed.
        points: one per seed, in the order of the plan.
    """

    sweep: str
    label: str
    dataset: str
    axes: Mapping[str, Any]
    points: tuple[PlannedPoint, ...]

    @property
    def group_id(self) -> str:
        """Identity of the setting without the seed."""
        return self.points[0].point.group_id

    @property
    def seeds(self) -> list[int]:
        """The seeds that the suite asks for."""
        return [p.point.seed for p in self.points]

    @property
    def is_baseline(self) -> bool:
        """Whether the other variants of its sweep are paired with it."""
        return all(p.baseline is None for p in self.points)

    @property
    def model(self) -> str:
        """Registry name of the model."""
        return self.points[0].point.model

    @property
    def is_control(self) -> bool:
        """Whether it takes the idea away and keeps the budget."""
        return MODELS.get(self.model).role == "control"

    @property
    def source(self) -> str | None:
        """`group_id` of the variant whose budget it keeps, if it does."""
        source = self.points[0].point.source
        return source.group_id if source is not None else None

    @property
    def trained(self) -> bool:
        """Whether its weights are trained (a cost sweep uses fresh ones)."""
        return self.points[0].point.trained

    @property
    def is_student(self) -> bool:
        """Whether it is distilled from a teacher."""
        return self.trained and MODELS.get(self.model).source == "teacher"

    @property
    def decides_heads(self) -> bool:
        """Whether it runs another number of heads than it has, or as many as another model does."""
        model = MODELS.get(self.model)
        return model.source in {"budgets", "weights", "macs"} or bool(
            {"s_min", "budget"} & set(model.declarable())
        )

    @property
    def halts_tokens(self) -> bool:
        """Whether it stops computing tokens on the way; a student does if its teacher does."""
        source = self.points[0].point.source
        models = [self.model, *([source.model] if source is not None else [])]
        return any("keep_ratio" in MODELS.get(model).declarable() for model in models)

    @property
    def reads_images(self) -> bool:
        """Whether its inputs are images, whose length is their side in pixels."""
        return MODELS.get(self.model).inputs == "image"
