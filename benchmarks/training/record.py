"""What is kept of a training: plain values, readable without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One pass over the training rows, or one tenth of a distillation's samples.

    Means are over the inputs for which there is such a value, in training mode.

    Attributes:
        epoch: counted from 1.
        steps: optimiser steps of this epoch.
        seconds: wall seconds of these steps, validation left out.
        lr: learning rate of the last step.
        losses: mean of each loss part ("task", then the model's own, weights applied) and "total".
        train_accuracy: share right while learning (dropout and noise on).
        validation_accuracy: share right afterwards, as inference would run; of a distillation on at
            most 1,000 rows of the split.
        mean_s: mean share of heads asked for; None for a model without head decisions.
        mean_k: mean number of heads that inference would compute.
        entropy: mean entropy of the head distribution over log(n_heads), in [0, 1].
        schedules: the model's schedules at the last step (temperature, noise ...); of a distillation
            its stage.
        samples: inputs seen since training began.
    """

    epoch: int
    steps: int
    seconds: float
    lr: float
    losses: dict[str, float]
    train_accuracy: float
    validation_accuracy: float
    mean_s: float | None
    mean_k: float | None
    entropy: float | None
    schedules: dict[str, float]
    samples: int = 0


@dataclass(frozen=True)
class TrainingRecord:
    """All epochs of one training."""

    epochs: tuple[EpochRecord, ...]

    @property
    def seconds(self) -> float:
        """Wall seconds of all steps, validation left out."""
        return sum(epoch.seconds for epoch in self.epochs)

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return sum(epoch.steps for epoch in self.epochs)

    def to_json(self) -> list[dict[str, Any]]:
        """One mapping per epoch."""
        return [asdict(epoch) for epoch in self.epochs]

    @classmethod
    def from_json(cls, values: list[Mapping[str, Any]]) -> TrainingRecord:
        """The inverse of `to_json`."""
        return cls(tuple(EpochRecord(**value) for value in values))


@dataclass(frozen=True, kw_only=True)
class ValidationScores:
    """The finished model on the validation split.

    Attributes:
        n: inputs.
        accuracy: share right, as inference runs (only the selected heads).
        macro_f1: mean F1 over classes.
        soft_accuracy: share right with training's gates (noise and dropout off); None for a model
            without head decisions.
    """

    n: int
    accuracy: float
    macro_f1: float
    soft_accuracy: float | None
