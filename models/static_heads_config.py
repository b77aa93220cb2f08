"""Configuration of the control with one choice of heads for all inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from models import costs
from models.config import EncoderConfig, Macs, TrainedSummary
from models.matched_k import mixed, require_fit


@dataclass(frozen=True, kw_only=True)
class StaticHeadsConfig(EncoderConfig):
    """A trained dense encoder that keeps its most important heads, the same ones for every input.

    Importance: Michel et al. 2019 (arXiv 1905.10650). Each layer keeps as many heads as a trained
    BudgetFormer used there on average: a fraction between two whole numbers is met by giving a
    share of the inputs the greater one.

    Attributes:
        finetune_epochs: epochs of further training with these heads alone; 0: none.
        k_histogram: per layer, entry k = weight of k heads; only `resolve` sets it. Empty: all
            heads everywhere.
    """

    target: ClassVar[str] = "models.static_heads:StaticHeads"
    summary: ClassVar[str] = "a trained dense model's most important heads, the same for all inputs"
    role: ClassVar[Literal["model", "control"]] = "control"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "budgets"
    base: ClassVar[Literal["none", "weights"]] = "weights"

    finetune_epochs: int = 0
    k_histogram: tuple[tuple[int, ...], ...] = field(default=(), metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finetune_epochs < 0:
            raise ValueError(f"finetune_epochs must not be negative, not {self.finetune_epochs}")
        require_fit(self.k_histogram, self)

    def training_epochs(self, epochs: int) -> int:
        """See `EncoderConfig.training_epochs`."""
        del epochs
        return self.finetune_epochs

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, which has no controllers to pay for; see `EncoderConfig.macs`."""
        return costs.encoder(self, length, [self.n_heads] * self.depth if k is None else k)

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the source's mean k of each layer.

        Raises:
            ValueError: the source decides no heads, or has another depth or number of heads.
        """
        if source.k_histogram is None:
            raise ValueError("static-heads needs a source that decides heads, e.g. budgetformer")
        return replace(self, k_histogram=tuple(mixed(row) for row in source.k_histogram))
