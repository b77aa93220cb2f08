"""Control: an adaptive BERT with random heads at inference; see `models.random_at_test`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.bert import PostNormEncoder
from models.random_at_test import RandomAtTest

if TYPE_CHECKING:
    from models.bert_random_at_test_config import BertRandomAtTestConfig


class BertRandomAtTest(RandomAtTest, PostNormEncoder):
    """BERT with head budgets, with its parameter names, and random heads in hard and masked mode."""

    config: BertRandomAtTestConfig
