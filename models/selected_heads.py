"""Attention that computes, for each input, only the heads that were selected for it.

There are several ways to do so, and none is the fastest everywhere; `models.head_strategy` chooses.
All of them read the parameters as they are: no other copy of a weight is kept, so nothing has to be
refreshed when weights change.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.dense import SelfAttention, attend
from models.encoder import Shared
from models.head_budget import first_of
from models.head_strategy import Geometry, Strategy, choose, per_part


class SelectiveAttention(SelfAttention):
    """Self-attention whose heads can be weighted, or computed for the inputs that chose them."""

    def gated(self, x: Tensor, gates: Tensor, shared: Shared) -> Tensor:
        """Computes every head and multiplies it by its gate; gates (batch, n_heads)."""
        heads = self.heads(x, shared.bias, plain=shared.plain_attention)
        projected: Tensor = self.output((heads * gates[:, None, :, None]).flatten(2))
        return projected

    def selected(
        self,
        x: Tensor,
        order: Tensor,
        k: Tensor,
        shared: Shared,
        strategy: Strategy | None = None,
    ) -> Tensor:
        """Computes only the first `k` heads of `order`, at unit gate.

        Args:
            x: (batch, length, d_model).
            order: (batch, n_heads) int64, each input's heads from best to worst.
            k: (batch,) int64, heads to compute for each input, 1 to n_heads.
            shared: of this forward pass.
            strategy: how; None leaves that to the measured rule. "dense" is for k = n_heads only.
        """
        counts: list[int] = k.tolist()
        plain = shared.plain_attention
        if strategy is None and len(counts) == 1:
            # what the rule would choose; asking costs a small layer more than it can save
            if counts[0] == self.n_heads:
                return self.dense(x, shared.bias, plain=plain)
            return self.of_heads(x, order[0, : counts[0]], shared.bias, plain=plain)
        geometry = Geometry(
            n_heads=self.n_heads,
            head_dim=self.head_dim,
            d_model=self.d_model,
            length=x.shape[1],
            element_size=x.element_size(),
            on_cpu=x.device.type == "cpu",
            gradients=torch.is_grad_enabled(),
        )
        strategy = strategy or choose(counts, geometry)
        if strategy == "dense":
            return self.dense(x, shared.bias, plain=plain)
        if strategy == "loop":
            return self._by_head(x, first_of(order, k), shared)
        if strategy == "sample":
            return self._by_sample(x, order, counts, shared)
        return self._by_bucket(x, order, counts, geometry, shared)

    def weighted(self, x: Tensor, chosen: Tensor, gates: Tensor, shared: Shared) -> Tensor:
        """Computes only the heads chosen (batch, n_heads), each times its gate (batch, n_heads)."""
        return self._by_head(x, chosen, shared, gates)

    def of_heads(self, x: Tensor, heads: Tensor, bias: Tensor | None, *, plain: bool) -> Tensor:
        """The layer with the same heads (k,) at unit gate for every input; see `attend`."""
        w_qkv, b_qkv, w_out = (part.index_select(0, heads) for part in self._weights_by_head())
        attended = self._few(x, w_qkv, b_qkv, bias, plain=plain)
        rows = torch.addmm(self.output.bias, attended, w_out.view(-1, self.d_model))
        return rows.view(x.shape)

    def _weights_by_head(self) -> tuple[Tensor, Tensor, Tensor]:
        """Joint projection, its bias and the output projection, (n_heads, all of a head)."""
        n_heads, qkv = self.n_heads, self.qkv
        joint, bias = qkv.weight.view(n_heads, -1), qkv.bias.view(n_heads, -1)
        return joint, bias, self.output.weight.view(n_heads, -1)

    def _few(
        self, x: Tensor, w_qkv: Tensor, b_qkv: Tensor, bias: Tensor | None, *, plain: bool
    ) -> Tensor:
        """Outputs (batch * length, k * head_dim) of k heads, the same ones for every input."""
        batch, length, d = x.shape
        k, hd = w_qkv.shape[0], self.head_dim
        qkv = torch.nn.functional.linear(x, w_qkv.view(k * 3 * hd, d), b_qkv.view(k * 3 * hd))
        q, key, v = qkv.view(batch, length, k, 3, hd).permute(3, 0, 2, 1, 4).unbind(0)
        attended = attend(q, key, v, bias, plain=plain).transpose(1, 2)
        return attended.reshape(batch * length, k * hd)

    def _by_sample(self, x: Tensor, order: Tensor, counts: list[int], shared: Shared) -> Tensor:
        d, plain, output_bias = self.d_model, shared.plain_attention, self.output.bias
        all_weights = self._weights_by_head()
        direct = _direct(x)
        out = torch.empty_like(x)
        places, parts = out.unbind(0), []
        rows = zip(counts, x.split_with_sizes([1] * len(counts)), order.unbind(0), strict=True)
        for i, (k, inputs, ranked) in enumerate(rows):
            w_qkv, b_qkv, w_out = all_weights
            if k < self.n_heads:
                heads = ranked[:k]
                w_qkv = w_qkv.index_select(0, heads)
                b_qkv = b_qkv.index_select(0, heads)
                w_out = w_out.index_select(0, heads)
            bias = None if shared.bias is None else shared.bias[i : i + 1]
            attended = self._few(inputs, w_qkv, b_qkv, bias, plain=plain)
            if direct:
                torch.addmm(output_bias, attended, w_out.view(-1, d), out=places[i])
            else:
                parts.append(torch.addmm(output_bias, attended, w_out.view(-1, d)))
        return out if direct else torch.stack(parts)

    def _by_bucket(
        self, x: Tensor, order: Tensor, counts: list[int], geometry: Geometry, shared: Shared
    ) -> Tensor:
        plain = shared.plain_attention
        done = _Outputs(x)
        distinct = sorted(set(counts))
        for k in distinct:
            members = [i for i, count in enumerate(counts) if count == k]
            step = min(len(members), per_part(k, geometry))
            for start in range(0, len(members), step):
                rows: slice | Tensor
                if len(distinct) == 1:
                    rows = slice(start, start + step)
                else:
                    rows = torch.tensor(members[start : start + step], device=x.device)
                bias = None if shared.bias is None else shared.bias[rows]
                if k == self.n_heads:
                    done.add(rows, self.dense(x[rows], bias, plain=plain))
                else:
                    attended, w_out = self._gathered(x[rows], order[rows, :k], bias, plain=plain)
                    done.add_product(rows, self.output.bias, attended, w_out)
        return done.together()

    def _gathered(
        self, x: Tensor, heads: Tensor, bias: Tensor | None, *, plain: bool
    ) -> tuple[Tensor, Tensor]:
        """Outputs of heads (batch, k), and the rows of the output projection that they need."""
        batch, k = heads.shape
        length, d, hd = x.shape[1], self.d_model, self.head_dim
        chosen = heads.reshape(-1)
        w_qkv, b_qkv, w_out = (part.index_select(0, chosen) for part in self._weights_by_head())
        qkv = torch.baddbmm(
            b_qkv.view(batch, 1, k * 3 * hd), x, w_qkv.view(batch, k * 3 * hd, d).transpose(1, 2)
        )
        q, key, v = qkv.view(batch, length, k, 3, hd).permute(3, 0, 2, 1, 4).unbind(0)
        attended = attend(q, key, v, bias, plain=plain).transpose(1, 2)
        return attended.reshape(batch, length, k * hd), w_out.view(batch, k * hd, d)

    def _by_head(
        self, x: Tensor, chosen: Tensor, shared: Shared, gates: Tensor | None = None
    ) -> Tensor:
        """Takes chosen (batch, n_heads) bool, and gates of the same shape or none."""
        batch, length, d = x.shape
        hd = self.head_dim
        members = chosen.t().nonzero()[:, 1].split_with_sizes(chosen.sum(0).tolist())
        w_qkv, b_qkv, w_out = self._weights_by_head()
        w_qkv, w_out = w_qkv.view(-1, 3 * hd, d), w_out.view(-1, hd, d)
        total = self.output.bias.expand(batch, length, d).to(x.dtype).clone()
        dtype = x.dtype
        for head, rows in enumerate(members):
            n = len(rows)
            if n == 0:
                continue
            bias = None if shared.bias is None else shared.bias[rows]
            inputs = x.index_select(0, rows)
            qkv = torch.nn.functional.linear(inputs, w_qkv[head], b_qkv[head])
            q, key, v = qkv.view(n, 1, length, 3, hd).unbind(3)
            attended = attend(q, key, v, bias, plain=shared.plain_attention)
            if gates is not None:
                attended = attended * gates[rows, head, None, None, None]
            product = torch.mm(attended.reshape(-1, hd), w_out[head]).view(n, length, d)
            dtype = product.dtype  # autocast's; the sum keeps its full width
            total.index_add_(0, rows, product.to(total.dtype))
        return total.to(dtype)


class _Outputs:
    """Puts a batch's output together from parts, each while it is still in the cache if it can."""

    def __init__(self, x: Tensor) -> None:
        self.out = torch.empty_like(x) if _direct(x) else None
        self.rows: list[Tensor] = []
        self.parts: list[Tensor] = []

    def add(self, rows: slice | Tensor, part: Tensor) -> None:
        """Takes the output of `rows`; slices must come in order."""
        if self.out is not None:
            self.out[rows] = part
            return
        self.parts.append(part)
        if isinstance(rows, Tensor):
            self.rows.append(rows)

    def add_product(
        self, rows: slice | Tensor, bias: Tensor, attended: Tensor, weights: Tensor
    ) -> None:
        """Takes bias + attended @ weights as the output of `rows`."""
        if self.out is not None and isinstance(rows, slice):
            torch.baddbmm(bias, attended, weights, out=self.out[rows])
        else:
            self.add(rows, torch.baddbmm(bias, attended, weights))

    def together(self) -> Tensor:
        """(batch, length, d_model), when all rows are there."""
        if self.out is not None:
            return self.out
        whole = torch.cat(self.parts)
        return whole.index_select(0, torch.cat(self.rows).argsort()) if self.rows else whole


def _direct(x: Tensor) -> bool:
    """Whether products may be written to their place: no gradient, and no type but x's."""
    return not torch.is_grad_enabled() and not torch.is_autocast_enabled(x.device.type)
