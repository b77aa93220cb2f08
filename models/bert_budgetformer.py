"""BERT with adaptive head budgets in every layer, e.g. fine-tuned from pretrained heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.bert import PostNormEncoder
from models.budgetformer import BudgetFormer

if TYPE_CHECKING:
    from models.bert_budgetformer_config import BertBudgetFormerConfig


class BertBudgetFormer(BudgetFormer, PostNormEncoder):
    """BudgetFormer's layers and losses in BERT's encoder.

    A layer's controllers see the mean of its input, which in a post-norm encoder is normed already.
    """

    config: BertBudgetFormerConfig
