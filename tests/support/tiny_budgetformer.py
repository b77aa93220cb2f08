"""A tiny BudgetFormer and a batch for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig

EPS = torch.finfo(torch.float32).eps


GEOMETRY: dict[str, Any] = {
    "depth": 2,
    "d_model": 12,
    "n_heads": 4,
    "vocab_size": 30,
    "n_classes": 3,
    "max_length": 8,
}


def make(seed: int = 0, **changes: Any) -> BudgetFormer:
    torch.manual_seed(seed)
    return BudgetFormer(BudgetFormerConfig(**(GEOMETRY | {"dropout": 0.0} | changes)))


def batch(rows: int = 6, length: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1, 30, (rows, length), generator=generator)
    lengths = torch.randint(1, length + 1, (rows, 1), generator=generator)
    return ids, torch.arange(length) >= lengths
