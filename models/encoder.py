"""The pre-norm Transformer encoder classifier that all text models here share.

What differs between the models is the attention sub-layer, which is given to the constructor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor, nn

from models.head_budget import first_of
from models.interface import Classifier, ClassifierOutput, HeadDecisions

if TYPE_CHECKING:
    from models.config import EncoderConfig


@dataclass(frozen=True)
class Shared:
    """What all layers of one forward pass share.

    Attributes:
        bias: (batch, 1, 1, length) added to attention scores: 0, or -inf where the key is padding;
            None if the batch has no padding.
        pooling: (batch, 1, length) weights of the mean over the positions that are not padding.
        head_mode: how adaptive layers treat their heads.
        plain_attention: use matmul and softmax in place of the fused kernel.
    """

    bias: Tensor | None
    pooling: Tensor
    head_mode: Literal["soft", "hard", "masked"]
    plain_attention: bool

    def pool(self, x: Tensor) -> Tensor:
        """Masked mean of x (batch, length, width) over its positions; zero for an empty input."""
        return torch.bmm(self.pooling, x).squeeze(1)


@dataclass(frozen=True)
class LayerHeads:
    """One adaptive layer's decision; see `HeadDecisions`, which has a depth dimension too.

    Attributes:
        budget: (batch,).
        scores: (batch, n_heads).
        k: (batch,) int64.
        order: (batch, n_heads) int64, heads from best to worst; the first k are selected.
    """

    budget: Tensor
    scores: Tensor
    k: Tensor
    order: Tensor


class AttentionLayer(nn.Module):
    """Base of the attention sub-layers: x (batch, length, d_model) to the same shape."""

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads | None]:
        """Returns the sub-layer's output, and its head decision if it makes one."""
        raise NotImplementedError


class Block(nn.Module):
    """Pre-norm residual block; without attention, its attention norm goes too."""

    def __init__(self, config: EncoderConfig, attention: AttentionLayer | None) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = None if attention is None else nn.LayerNorm(config.d_model)
        self.ffn_norm = nn.LayerNorm(config.d_model)
        self.ffn_in = nn.Linear(config.d_model, config.width_of_ffn)
        self.ffn_out = nn.Linear(config.width_of_ffn, config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads | None]:
        """See `AttentionLayer.forward`."""
        heads = None
        if self.attention is not None and self.attention_norm is not None:
            attended, heads = self.attention(self.attention_norm(x), shared)
            x = x + self.dropout(attended)
        hidden = nn.functional.gelu(self.ffn_in(self.ffn_norm(x)))
        return x + self.dropout(self.ffn_out(hidden)), heads


class EncoderClassifier(Classifier):
    """Embeddings, blocks, final norm, masked mean over the tokens, linear head.

    Attributes:
        plain_attention: set it to compute attention by matmul and softmax, which counters of
            FLOPs see through; the values agree with the fused kernel's up to rounding.
    """

    plain_attention: bool = False
    block: type[Block] = Block

    def __init__(self, config: EncoderConfig, attention: Sequence[AttentionLayer | None]) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = nn.Embedding(config.max_length, config.d_model)
        self.segment = (
            nn.Embedding(config.n_segments, config.d_model) if config.n_segments > 1 else None
        )
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(self.block(config, layer) for layer in attention)
        self.norm = nn.LayerNorm(config.d_model)
        self.head = nn.Linear(config.d_model, config.n_classes)
        for table in (self.token, self.position, self.segment):
            if table is not None:
                nn.init.normal_(table.weight, std=0.02)

    def forward(
        self,
        input_ids: Tensor,
        key_padding_mask: Tensor,
        segment_ids: Tensor | None = None,
    ) -> ClassifierOutput:
        """See `Classifier.forward`; an input that is all padding gives the head's bias."""
        x = self.dropout(self._embed(input_ids, segment_ids))
        shared = self._shared(key_padding_mask, x)
        decisions: list[LayerHeads] = []
        for block in self.blocks:
            x, heads = block(x, shared)
            if heads is not None:
                decisions.append(heads)
        logits = self.head(self._pooled(x, shared))
        return ClassifierOutput(logits, _stack(decisions) if decisions else None)

    def _embed(self, input_ids: Tensor, segment_ids: Tensor | None) -> Tensor:
        length = input_ids.shape[1]
        if length > self.config.max_length:
            raise ValueError(
                f"the input has {length} tokens, but the model has positions for "
                f"max_length = {self.config.max_length} only: truncate it or build a longer model"
            )
        x = cast(Tensor, self.token(input_ids)) + self.position.weight[:length]
        if self.segment is None:
            return x
        # no segment ids: one text, all of it segment 0
        return x + (self.segment.weight[0] if segment_ids is None else self.segment(segment_ids))

    def _pooled(self, x: Tensor, shared: Shared) -> Tensor:
        return shared.pool(self.norm(x))

    def _shared(self, key_padding_mask: Tensor, x: Tensor) -> Shared:
        mode = self.head_mode
        if mode == "auto":
            mode = "soft" if self.training else "hard"
        if not key_padding_mask.any():
            batch, length = key_padding_mask.shape
            pooling = x.new_full((batch, 1, length), 1.0 / length)
            return Shared(None, pooling, mode, self.plain_attention)
        kept = (~key_padding_mask).to(x.dtype)
        pooling = kept / kept.sum(1, keepdim=True).clamp(min=1.0)
        # an input that is all padding attends to all of it, so that no softmax is over nothing
        hidden = key_padding_mask & ~key_padding_mask.all(1, keepdim=True)
        bias = torch.zeros_like(kept).masked_fill_(hidden, float("-inf"))
        return Shared(bias[:, None, None], pooling[:, None], mode, self.plain_attention)


def _stack(layers: Sequence[LayerHeads]) -> HeadDecisions:
    k = torch.stack([layer.k for layer in layers], 1)
    return HeadDecisions(
        budget=torch.stack([layer.budget for layer in layers], 1),
        scores=torch.stack([layer.scores for layer in layers], 1),
        k=k,
        selected=first_of(torch.stack([layer.order for layer in layers], 1), k),
    )
