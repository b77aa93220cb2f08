"""Configuration of the control that keeps BudgetFormer's weights and picks heads at random."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, Self

from models.budgetformer_config import BudgetFormerConfig
from models.config import TrainedSummary


@dataclass(frozen=True, kw_only=True)
class RandomAtTestConfig(BudgetFormerConfig):
    """A trained BudgetFormer whose choice of heads, not their number, is random at inference."""

    target: ClassVar[str] = "models.random_at_test:RandomAtTest"
    summary: ClassVar[str] = "a trained BudgetFormer, its own k, random heads at inference"
    role: ClassVar[Literal["model", "control"]] = "control"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "weights"

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the source's whole configuration."""
        known = {f.name for f in fields(self)}
        return replace(self, **{k: v for k, v in source.params.items() if k in known})
