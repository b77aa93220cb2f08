"""Control: BudgetFormer with one budget s for all inputs and layers, and no budget network.

The paper's own ablation (arXiv 2604.22583). If it is as accurate at the same mean k, letting each
input choose how many heads run is worth nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from models.budgetformer import BudgetAttention, BudgetFormer

if TYPE_CHECKING:
    from models.budgetformer_config import BudgetFormerConfig
    from models.fixed_budget_config import FixedBudgetConfig
    from models.interface import ClassifierOutput


class FixedHeadBudget(nn.Module):
    """The head scorer alone, beside a constant."""

    def __init__(self, d_model: int, n_heads: int, budget: float) -> None:
        super().__init__()
        self.budget = budget
        self.scorer = nn.Linear(d_model, n_heads)

    def forward(self, pooled: Tensor, noise: Tensor | None, tau: float) -> tuple[Tensor, Tensor]:
        """See `HeadBudget.forward`; s is the same for every input."""
        z = self.scorer(pooled)
        if noise is not None:
            z = z + noise
        return z.new_full((len(z),), self.budget), torch.softmax(z / tau, 1)


class FixedBudgetAttention(BudgetAttention):
    """Budget attention whose budget is given."""

    @staticmethod
    def build_controller(config: BudgetFormerConfig) -> nn.Module:
        """See `BudgetAttention.build_controller`."""
        budget = cast("FixedBudgetConfig", config).budget
        return FixedHeadBudget(config.d_model, config.n_heads, budget)


class FixedBudget(BudgetFormer):
    """The encoder classifier with a fixed head budget in every layer."""

    config: FixedBudgetConfig
    layer = FixedBudgetAttention

    def auxiliary_losses(self, output: ClassifierOutput) -> dict[str, Tensor]:
        """The term "entropy" alone: a constant budget has nothing to learn."""
        losses = super().auxiliary_losses(output)
        return {name: loss for name, loss in losses.items() if name != "budget"}
