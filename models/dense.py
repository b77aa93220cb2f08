"""The dense encoder: multi-head self-attention through the fused kernel (Vaswani et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from models.encoder import AttentionLayer, EncoderClassifier, LayerHeads, Shared

if TYPE_CHECKING:
    from models.dense_config import DenseConfig


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, *, plain: bool) -> Tensor:
    """Scaled dot-product attention of (batch, heads, length, head_dim) queries, keys and values.

    Args:
        q: queries.
        k: keys.
        v: values.
        bias: added to the scores; (batch, 1, 1, length) or None.
        plain: matmul, softmax, matmul in place of the fused kernel.
    """
    if not plain:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    return torch.softmax(scores, -1) @ v


class OutputProjection(nn.Module):
    """A linear map stored as (in, out), so that the rows of one head lie together."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        self.bias = nn.Parameter(torch.empty(d_out))
        bound = d_in**-0.5  # as nn.Linear does
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, in) to (batch, length, out)."""
        rows = torch.addmm(self.bias, x.flatten(0, 1), self.weight)
        return rows.view(x.shape[0], x.shape[1], -1)


class SelfAttention(AttentionLayer):
    """All heads of one layer; n_heads * head_dim need not be d_model.

    The joint projection's rows are ordered head by head, and within a head Q, K, V.

    Attributes:
        capture: keep the concatenated head outputs of each dense pass in `captured`.
        captured: (batch, length, n_heads * head_dim), before the output projection.
    """

    capture: bool = False
    captured: Tensor | None = None

    def __init__(self, d_model: int, n_heads: int, head_dim: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.n_heads = n_heads
        self.head_dim = head_dim
        self.qkv = nn.Linear(d_model, n_heads * 3 * head_dim)
        self.output = OutputProjection(n_heads * head_dim, d_model)

    def heads(self, x: Tensor, bias: Tensor | None, *, plain: bool) -> Tensor:
        """All heads' outputs, (batch, length, n_heads, head_dim)."""
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, self.n_heads, 3, self.head_dim)
        q, k, v = qkv.permute(3, 0, 2, 1, 4).unbind(0)
        return attend(q, k, v, bias, plain=plain).transpose(1, 2)

    def dense(self, x: Tensor, bias: Tensor | None, *, plain: bool) -> Tensor:
        """The layer with every head at unit gate."""
        mixed = self.heads(x, bias, plain=plain).flatten(2)
        if self.capture:
            self.captured = mixed
        projected: Tensor = self.output(mixed)
        return projected

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads | None]:
        """See `AttentionLayer.forward`."""
        return self.dense(x, shared.bias, plain=shared.plain_attention), None


class Dense(EncoderClassifier):
    """The dense encoder classifier."""

    def __init__(self, config: DenseConfig) -> None:
        super().__init__(
            config,
            [
                SelfAttention(config.d_model, config.n_heads, config.width_of_head)
                for _ in range(config.depth)
            ],
        )
