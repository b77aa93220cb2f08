"""Configuration of the control with one budget for all inputs (the paper's fixed-budget ablation)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from models.budgetformer_config import BudgetFormerConfig
from models.config import Macs

NO_FIELD = {"declarable": False}


@dataclass(frozen=True, kw_only=True)
class FixedBudgetConfig(BudgetFormerConfig):
    """BudgetFormer without the budget network: every input gets the same s, the scorer is kept.

    Source: BudgetFormer (arXiv 2604.22583), ablation over fixed budgets.

    Attributes:
        budget: s of every input in every layer, in (0, 1].
    """

    target: ClassVar[str] = "models.fixed_budget:FixedBudget"
    summary: ClassVar[str] = "one budget s for all inputs, heads still chosen for each"
    role: ClassVar[Literal["model", "control"]] = "control"

    budget: float = 0.25
    s_min: float = field(default=0.0, metadata=NO_FIELD)
    s_max: float = field(default=1.0, metadata=NO_FIELD)
    fixed_k: int | None = field(default=None, metadata=NO_FIELD)
    budget_weight: float = field(default=0.0, metadata=NO_FIELD)
    controller_width: int | None = field(default=None, metadata=NO_FIELD)
    initial_budget: float = field(default=0.5, metadata=NO_FIELD)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.budget <= 1.0:
            raise ValueError(f"budget must lie in (0, 1], not {self.budget}")

    @property
    def width_of_controller(self) -> int:
        """0: there is no budget network to pay for."""
        return 0

    @property
    def k(self) -> int:
        """Heads that every layer computes at inference; the rounding is `head_budget.heads_for`'s."""
        asked = self.budget * self.n_heads
        k = math.ceil(asked - 1e-6) if self.rounding == "ceil" else math.floor(asked + 1e-6)
        return min(max(1, k), self.n_heads)

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, the scorer included; without `k`, at the fixed budget."""
        return super().macs(length, [self.k] * self.depth if k is None else k)
