"""Configuration of BERT with one choice of heads for all inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from models.bert_config import BertConfig, as_bert
from models.config import Macs
from models.static_heads_config import StaticHeadsConfig


@dataclass(frozen=True, kw_only=True)
class BertStaticHeadsConfig(StaticHeadsConfig, BertConfig):
    """A fine-tuned BERT that keeps its most important heads, the same ones for every input."""

    target: ClassVar[str] = "models.bert_static_heads:BertStaticHeads"
    summary: ClassVar[str] = "a fine-tuned BERT's most important heads, the same for all inputs"

    depth: int = 6
    d_model: int = 384
    n_heads: int = 12

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, which has no controllers to pay for; see `EncoderConfig.macs`."""
        return as_bert(self, super().macs(length, k), length)
