"""Configuration of BERT fine-tuned with random heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from models.bert_config import BertConfig, as_bert
from models.config import Macs
from models.random_trained_config import RandomTrainedConfig


@dataclass(frozen=True, kw_only=True)
class BertRandomTrainedConfig(RandomTrainedConfig, BertConfig):
    """BERT that computes random heads, as many as a trained BERT with head budgets used."""

    target: ClassVar[str] = "models.bert_random_trained:BertRandomTrained"
    summary: ClassVar[str] = "BERT fine-tuned with random heads, as many as a trained one uses"

    depth: int = 6
    d_model: int = 384
    n_heads: int = 12

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, which has no controllers to pay for; see `EncoderConfig.macs`."""
        return as_bert(self, super().macs(length, k), length)
