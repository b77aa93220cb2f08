"""Configuration of BERT with head budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from models.bert_config import BertConfig, as_bert
from models.budgetformer_config import BudgetFormerConfig
from models.config import Macs


@dataclass(frozen=True, kw_only=True)
class BertBudgetFormerConfig(BudgetFormerConfig, BertConfig):
    """BERT in which each input chooses how many and which heads each layer computes.

    The heads can be pretrained; the controllers always start fresh.
    """

    target: ClassVar[str] = "models.bert_budgetformer:BertBudgetFormer"
    summary: ClassVar[str] = "BERT whose pretrained heads each input chooses from"

    depth: int = 6
    d_model: int = 384
    n_heads: int = 12

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, controllers included; see `BudgetFormerConfig.macs`."""
        return as_bert(self, super().macs(length, k), length)
