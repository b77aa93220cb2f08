"""Control: BERT with one choice of heads for all inputs; see `models.static_heads`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.bert import PostNormEncoder
from models.static_heads import StaticHeads

if TYPE_CHECKING:
    from models.bert_static_heads_config import BertStaticHeadsConfig


class BertStaticHeads(StaticHeads, PostNormEncoder):
    """BERT's encoder with the same heads for every input."""

    config: BertStaticHeadsConfig
