"""Configuration of the control that trains with random heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, get_args

from models import costs
from models.config import EncoderConfig, Macs, TrainedSummary
from models.matched_k import mixed, require_fit

Spread = Literal["histogram", "mean"]


@dataclass(frozen=True, kw_only=True)
class RandomTrainedConfig(EncoderConfig):
    """An encoder that computes random heads, as many as a trained model used.

    Attributes:
        spread: "histogram" draws k as the source's k is spread over inputs; "mean" keeps its mean
            alone, by mixing the whole numbers below and above it.
        k_histogram: per layer, entry k = how many of the source's validation inputs used k heads;
            only `resolve` sets it.
    """

    target: ClassVar[str] = "models.random_trained:RandomTrained"
    summary: ClassVar[str] = "trained with random heads, as many as a trained BudgetFormer uses"
    role: ClassVar[Literal["model", "control"]] = "control"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "budgets"

    spread: Spread = "histogram"
    k_histogram: tuple[tuple[int, ...], ...] = field(default=(), metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spread not in get_args(Spread):
            raise ValueError(f"spread must be 'histogram' or 'mean', not {self.spread!r}")
        require_fit(self.k_histogram, self)

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, which has no controllers to pay for; see `EncoderConfig.macs`."""
        return costs.encoder(self, length, [self.n_heads] * self.depth if k is None else k)

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the source's histogram of k, or its mean.

        Raises:
            ValueError: the source decides no heads, or has another depth or number of heads.
        """
        if source.k_histogram is None:
            raise ValueError("random-trained needs a source that decides heads, e.g. budgetformer")
        rows = [tuple(row) for row in source.k_histogram]
        if self.spread == "mean":
            rows = [mixed(row) for row in rows]
        return replace(self, k_histogram=tuple(rows))
