"""The control that keeps attention's parameters and drops its quadratic cost."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.mixers.interface import TokenMixer
from models.mixers.names import check
from models.mixers.padding import lengths_of, zero_padding


class LinearAttention(TokenMixer):
    """Attention with weights phi(q) . phi(k), phi = elu + 1, over their sum (Katharopoulos et al. 2020).

    The joint projection's rows are ordered Q, K, V, and within each head by head.

    Args:
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head.

    Raises:
        ValueError: a width below 1.
    """

    def __init__(self, d_model: int, n_heads: int, head_dim: int) -> None:
        check("linear-attention", d_model, n_heads, head_dim, {})
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = head_dim
        self.qkv = nn.Linear(d_model, 3 * n_heads * head_dim)
        self.proj = nn.Linear(n_heads * head_dim, d_model)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`.

        Raises:
            ValueError: a token follows padding.
        """
        lengths = lengths_of(key_padding_mask)
        batch, tokens, _ = x.shape
        query, key, value = self.qkv(x).chunk(3, -1)
        key = zero_padding(_positive(key), lengths)
        by_head = (batch, tokens, self.n_heads, self.head_dim)
        q, k, v = (part.view(by_head).transpose(1, 2) for part in (_positive(query), key, value))
        totals = k.sum(2, keepdim=True)
        norm = q @ totals.transpose(-2, -1)
        mixed = (q @ (k.transpose(-2, -1) @ v)) / norm.clamp(min=torch.finfo(x.dtype).tiny)
        return zero_padding(mixed.transpose(1, 2).flatten(2), lengths)


def _positive(x: Tensor) -> Tensor:
    return nn.functional.elu(x) + 1.0
