"""Multi-head self-attention as a token mixer, through the fused kernel (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.dense import attend
from models.mixers.interface import TokenMixer


class Attention(TokenMixer):
    """All heads of one layer; n_heads * head_dim need not be d_model.

    The joint projection's rows are all queries, all keys, all values, and each of these head by
    head, as in timm's Vision Transformers.
    """

    proj: nn.Linear

    def __init__(self, d_model: int, n_heads: int, head_dim: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = head_dim
        self.qkv = nn.Linear(d_model, 3 * n_heads * head_dim)
        self.proj = nn.Linear(n_heads * head_dim, d_model)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`; padding may lie anywhere, and be all there is."""
        if key_padding_mask is None:
            return self.attend(x)
        # an input that is all padding attends to all of it, so that no softmax is over nothing
        hidden = key_padding_mask & ~key_padding_mask.all(1, keepdim=True)
        bias = torch.zeros_like(hidden, dtype=x.dtype).masked_fill_(hidden, float("-inf"))
        return self.attend(x, bias).masked_fill(key_padding_mask.unsqueeze(2), 0.0)

    def attend(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """The concatenated head outputs of every token.

        Args:
            x: (batch, tokens, d_model).
            bias: (batch, tokens) added to the scores of each key; None: nothing.

        Returns:
            (batch, tokens, n_heads * head_dim).
        """
        q, k, v = self._split(self.qkv(x))
        bias = None if bias is None else bias[:, None, None]
        return attend(q, k, v, bias, plain=self.plain).transpose(1, 2).flatten(2)

    def packed(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The same for inputs of different lengths that lie one behind the other, without padding.

        Args:
            rows: (sum of counts, d_model).
            counts: tokens of each input; 0 for one without any.

        Returns:
            (sum of counts, n_heads * head_dim).
        """
        lengths = set(counts)
        if len(lengths) == 1:
            alike = rows.view(len(counts), lengths.pop(), rows.shape[1])
            return self.attend(alike).flatten(0, 1)
        mixed = []
        for part in self.qkv(rows).split([n for n in counts if n]):
            q, k, v = self._split(part.unsqueeze(0))
            mixed.append(attend(q, k, v, None, plain=self.plain).transpose(1, 2).flatten(2)[0])
        return torch.cat(mixed)

    def _split(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, n_heads, tokens, head_dim)."""
        batch, tokens, _ = qkv.shape
        parts = qkv.view(batch, tokens, 3, self.n_heads, self.head_dim)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v
