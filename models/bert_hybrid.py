"""BERT in which other modules than attention mix the tokens of some layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from models.bert import Bert
from models.encoder import Block
from models.hybrid import Hybrid
from models.mixers.build import replace_attention
from models.mixers.in_encoder import MixerLayer

if TYPE_CHECKING:
    from torch import nn

    from models.bert_hybrid_config import BertHybridConfig


class BertHybrid(Hybrid, Bert):
    """BERT with the attention of some layers replaced."""

    config: BertHybridConfig
    output: ClassVar[str] = "output"

    def __init__(self, config: BertHybridConfig) -> None:
        super().__init__(config)
        replace_attention(
            [(block, "attention") for block in self.blocks],
            config.replace,
            config.mixer,
            config.d_model,
            config.n_heads,
            config.width_of_head,
            adapt=MixerLayer,
            **config.mixer_options,
        )

    def replaced(self) -> dict[str, nn.Module]:
        """See `Hybrid.replaced`."""
        return {
            f"blocks.{i}.attention": cast("nn.Module", cast(Block, self.blocks[i]).attention)
            for i in self.config.replace
        }
