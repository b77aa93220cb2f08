"""Configuration of the control that keeps an adaptive BERT's weights and picks heads at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.bert_budgetformer_config import BertBudgetFormerConfig
from models.random_at_test_config import RandomAtTestConfig


@dataclass(frozen=True, kw_only=True)
class BertRandomAtTestConfig(RandomAtTestConfig, BertBudgetFormerConfig):
    """A trained BERT with head budgets whose choice of heads, not their number, is random."""

    target: ClassVar[str] = "models.bert_random_at_test:BertRandomAtTest"
    summary: ClassVar[str] = "a trained bert-budgetformer, its own k, random heads at inference"

    depth: int = 6
    d_model: int = 384
    n_heads: int = 12
