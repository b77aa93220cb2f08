"""The control that deletes a layer's mixing of tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from models.mixers.interface import TokenMixer
from models.mixers.names import check


class Identity(TokenMixer):
    """Adds nothing to the residual: no parameters, no output projection, no work.

    Args:
        d_model: width of the residual stream.
        n_heads: heads of the attention it replaces.
        head_dim: width of one of them.

    Raises:
        ValueError: a width below 1.
    """

    def __init__(self, d_model: int, n_heads: int, head_dim: int) -> None:
        check("identity", d_model, n_heads, head_dim, {})
        super().__init__()
        self.width = n_heads * head_dim

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`; zero everywhere."""
        del key_padding_mask
        return x.new_zeros(*x.shape[:2], self.width)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """Zeros, (batch, tokens, d_model)."""
        if self.capture:
            self.captured = self.heads(x, key_padding_mask)
        return torch.zeros_like(x)
