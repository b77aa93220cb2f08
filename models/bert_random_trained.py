"""Control: BERT fine-tuned and tested with random heads; see `models.random_trained`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.bert import PostNormEncoder
from models.random_trained import RandomTrained

if TYPE_CHECKING:
    from models.bert_random_trained_config import BertRandomTrainedConfig


class BertRandomTrained(RandomTrained, PostNormEncoder):
    """Random heads in every layer of BERT's encoder, whose heads can be pretrained."""

    config: BertRandomTrainedConfig
