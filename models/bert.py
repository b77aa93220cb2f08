"""BERT (Devlin et al. 2019, arXiv 1810.04805) as a classifier of texts and pairs of texts.

In evaluation mode the hidden states are those of transformers' `BertModel` with the same weights.
In training there is no dropout on attention weights, as in all encoders here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from models.bert_weights import copy_weights
from models.dense import SelfAttention
from models.encoder import AttentionLayer, Block, EncoderClassifier, LayerHeads, Shared

if TYPE_CHECKING:
    from models.bert_config import BertConfig
    from models.config import EncoderConfig

NORM_EPS = 1e-12
TOKEN_TYPES = 2


class PostNormBlock(Block):
    """The residual block as first published: each norm follows its residual sum."""

    def __init__(self, config: EncoderConfig, attention: AttentionLayer | None) -> None:
        super().__init__(config, attention)
        self.attention_norm = nn.LayerNorm(config.d_model, NORM_EPS)
        self.ffn_norm = nn.LayerNorm(config.d_model, NORM_EPS)

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads | None]:
        """See `AttentionLayer.forward`."""
        heads = None
        if self.attention is not None and self.attention_norm is not None:
            attended, heads = self.attention(x, shared)
            x = self.attention_norm(x + self.dropout(attended))
        hidden = nn.functional.gelu(self.ffn_in(x))
        return self.ffn_norm(x + self.dropout(self.ffn_out(hidden))), heads


class PostNormEncoder(EncoderClassifier):
    """Embeddings with token types and a norm of their own, post-norm blocks, pooling, linear head."""

    config: BertConfig
    block = PostNormBlock

    def __init__(self, config: BertConfig, attention: Sequence[AttentionLayer | None]) -> None:
        super().__init__(config, attention)
        self.norm = nn.LayerNorm(config.d_model, NORM_EPS)
        self.segment = nn.Embedding(TOKEN_TYPES, config.d_model)
        nn.init.normal_(self.segment.weight, std=0.02)

    def load_pretrained(self, state: Mapping[str, Tensor]) -> None:
        """Takes over a BERT encoder; the linear head and head controllers stay fresh.

        Args:
            state: tensors by transformers' names, with or without a leading "bert.".

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        copy_weights(self, state)

    def _embed(self, input_ids: Tensor, segment_ids: Tensor | None) -> Tensor:
        embedded: Tensor = self.norm(super()._embed(input_ids, segment_ids))
        return embedded

    def _pooled(self, x: Tensor, shared: Shared) -> Tensor:
        return shared.pool(x) if self.config.pooling == "mean" else x[:, 0]


class Bert(PostNormEncoder):
    """BERT with every head for every input."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(
            config,
            [
                SelfAttention(config.d_model, config.n_heads, config.width_of_head)
                for _ in range(config.depth)
            ],
        )

    def mixers(self) -> list[Any]:
        """The attention sub-layer of each layer; they `capture` as token mixers do."""
        return [cast(Block, block).attention for block in self.blocks]
