"""Attention that computes, for each input, only the heads that were selected for it."""

from __future__ import annotations

import torch
from torch import Tensor

from models.dense import SelfAttention, attend
from models.encoder import Shared

GATHER_BYTES = 4 * 2**20
"""Weights gathered at a time: more than that leaves the cache before it is used."""


class SelectiveAttention(SelfAttention):
    """Self-attention whose heads can be weighted, or computed for the inputs that chose them."""

    def gated(self, x: Tensor, gates: Tensor, shared: Shared) -> Tensor:
        """Computes every head and multiplies it by its gate; gates (batch, n_heads)."""
        heads = self.heads(x, shared.bias, plain=shared.plain_attention)
        projected: Tensor = self.output((heads * gates[:, None, :, None]).flatten(2))
        return projected

    def selected(self, x: Tensor, order: Tensor, k: Tensor, shared: Shared) -> Tensor:
        """Computes only the first `k` heads of `order`, at unit gate.

        Inputs with equal k form a bucket and are computed together: their heads' weights are
        gathered, and one batched product serves the bucket (or as much of it as fits the cache).
        A bucket that wants every head is a dense layer.

        Args:
            x: (batch, length, d_model).
            order: (batch, n_heads) int64, each input's heads from best to worst.
            k: (batch,) int64, heads to compute for each input, 1 to n_heads.
            shared: of this forward pass.
        """
        counts: list[int] = k.tolist()
        distinct = sorted(set(counts))
        if len(distinct) == 1:
            return self._bucket(x, order[:, : distinct[0]], shared.bias, shared)
        out = torch.empty_like(x)
        for count in distinct:
            rows = torch.tensor([i for i, c in enumerate(counts) if c == count], device=x.device)
            bias = None if shared.bias is None else shared.bias.index_select(0, rows)
            heads = order.index_select(0, rows)[:, :count]
            part = self._bucket(x.index_select(0, rows), heads, bias, shared)
            out.index_copy_(0, rows, part)
        return out

    def _bucket(self, x: Tensor, heads: Tensor, bias: Tensor | None, shared: Shared) -> Tensor:
        batch, k = heads.shape
        if k == self.n_heads:
            return self.dense(x, bias, plain=shared.plain_attention)
        weights = 4 * k * self.head_dim * self.d_model
        fitting = max(1, GATHER_BYTES // (weights * x.element_size()))
        if batch <= fitting:
            return self._gathered(x, heads, bias, shared)
        parts = []
        for start in range(0, batch, fitting):
            rows = slice(start, start + fitting)
            part = None if bias is None else bias[rows]
            parts.append(self._gathered(x[rows], heads[rows], part, shared))
        return torch.cat(parts)

    def _gathered(self, x: Tensor, heads: Tensor, bias: Tensor | None, shared: Shared) -> Tensor:
        batch, k = heads.shape
        length, d, hd = x.shape[1], self.d_model, self.head_dim
        chosen = heads.reshape(-1)
        w_qkv = self.qkv.weight.view(self.n_heads, -1).index_select(0, chosen)
        b_qkv = self.qkv.bias.view(self.n_heads, -1).index_select(0, chosen)
        w_out = self.output.weight.view(self.n_heads, -1).index_select(0, chosen)
        qkv = torch.bmm(x, w_qkv.view(batch, k * 3 * hd, d).transpose(1, 2))
        qkv = qkv + b_qkv.view(batch, 1, k * 3 * hd)
        q, key, v = qkv.view(batch, length, k, 3, hd).permute(3, 0, 2, 1, 4).unbind(0)
        attended = attend(q, key, v, bias, plain=shared.plain_attention)
        attended = attended.transpose(1, 2).reshape(batch, length, k * hd)
        return torch.bmm(attended, w_out.view(batch, k * hd, d)) + self.output.bias


def first_of(order: Tensor, k: Tensor) -> Tensor:
    """(batch, n_heads) bool: which heads are among the first `k` (batch,) of `order`."""
    ranks = torch.arange(order.shape[1], device=order.device)
    chosen = ranks < k.unsqueeze(1)
    return torch.empty_like(chosen).scatter_(1, order, chosen)
