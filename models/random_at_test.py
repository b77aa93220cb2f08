"""Control: a trained BudgetFormer that computes as many heads as it asks for, but random ones.

If it is as accurate as BudgetFormer, the head scorer's choice is worth nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.budgetformer import BudgetAttention, BudgetFormer


class RandomOrderAttention(BudgetAttention):
    """Budget attention that ranks heads uniformly at random for every input."""

    def order(self, p: Tensor) -> Tensor:
        """A random order of heads for each input, from the model's own generator."""
        return torch.rand(p.shape, generator=self.generator).argsort(1).to(p.device)


class RandomAtTest(BudgetFormer):
    """BudgetFormer, with its parameter names, and random heads in hard and masked mode.

    In soft mode it is BudgetFormer: all heads run, weighted by the scorer.
    """

    layer = RandomOrderAttention
