"""Configuration of the control that trains with random heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from models import costs
from models.config import EncoderConfig, Macs, TrainedSummary


@dataclass(frozen=True, kw_only=True)
class RandomTrainedConfig(EncoderConfig):
    """An encoder that computes random heads, as many as a trained model used.

    Attributes:
        k_histogram: per layer, entry k = how many of the source's validation inputs used k heads;
            only `resolve` sets it.
    """

    target: ClassVar[str] = "models.random_trained:RandomTrained"
    summary: ClassVar[str] = "trained with random heads, as many as a trained BudgetFormer uses"
    role: ClassVar[Literal["model", "control"]] = "control"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "budgets"

    k_histogram: tuple[tuple[int, ...], ...] = field(default=(), metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.k_histogram:
            return
        if len(self.k_histogram) != self.depth:
            raise ValueError(
                f"k_histogram must have one row per layer ({self.depth}), not "
                f"{len(self.k_histogram)}: the source must have the same depth"
            )
        for layer, row in enumerate(self.k_histogram):
            if (
                min(row, default=0) < 0
                or sum(row[1 : self.n_heads + 1]) != sum(row)
                or not sum(row)
            ):
                raise ValueError(
                    f"k_histogram of layer {layer} must count inputs with 1 to {self.n_heads} "
                    f"heads, not {list(row)}"
                )

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, which has no controllers to pay for; see `EncoderConfig.macs`."""
        return costs.encoder(self, length, [self.n_heads] * self.depth if k is None else k)

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the source's histogram of k.

        Raises:
            ValueError: the source decides no heads, or has another depth or number of heads.
        """
        if source.k_histogram is None:
            raise ValueError("random-trained needs a source that decides heads, e.g. budgetformer")
        return replace(self, k_histogram=tuple(tuple(row) for row in source.k_histogram))
