"""Mamba-2 in both directions in the place of attention (S2S, arXiv 2605.18865)."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.mixers.interface import TokenMixer
from models.mixers.names import check
from models.mixers.padding import lengths_of, zero_padding
from models.mixers.ssd import choose

NORM_EPS = 1e-5
RATES = (1.0, 16.0)
"""Range of the fresh rates -a, uniform (Dao and Gu's code)."""
STEPS = (0.001, 0.1)
"""Range of the fresh step sizes dt at zero input, log-uniform (the same)."""


class Direction(nn.Module):
    """One Mamba-2 mixer without its output projection (Dao and Gu 2024, section 7).

    Parameters are named and shaped as in Mamba-2's own code and in transformers.

    Args:
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head.
        state: size of the state per channel; B and C are the same for all heads (one group).
        conv: taps of the causal convolution.
    """

    def __init__(self, d_model: int, n_heads: int, head_dim: int, state: int, conv: int) -> None:
        super().__init__()
        self.width = n_heads * head_dim
        channels = self.width + 2 * state
        self.sizes = [self.width, channels, n_heads]
        self.in_proj = nn.Linear(d_model, sum(self.sizes), bias=False)
        self.conv1d = nn.Conv1d(channels, channels, conv, groups=channels, padding=conv - 1)
        self.dt_bias = nn.Parameter(_inverse_softplus(_log_uniform(n_heads, *STEPS)))
        self.A_log = nn.Parameter(torch.empty(n_heads).uniform_(*RATES).log())
        self.D = nn.Parameter(torch.ones(n_heads))
        self.norm = nn.RMSNorm(self.width, eps=NORM_EPS)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gate (batch, tokens, width); convolved x, B, C before SiLU; dt before softplus."""
        gate, channels, steps = torch.split(self.in_proj(x), self.sizes, -1)
        # as an image one pixel high whose channels lie innermost, as they do already: 8 times faster
        image = channels.transpose(1, 2).unsqueeze(2)
        conv = self.conv1d
        convolved = functional.conv2d(
            image,
            conv.weight.unsqueeze(2),
            conv.bias,
            padding=(0, conv.kernel_size[0] - 1),
            groups=conv.groups,
        )
        return gate, convolved.squeeze(2).transpose(1, 2)[:, : x.shape[1]], steps + self.dt_bias

    def finish(self, y: Tensor, x: Tensor, gate: Tensor) -> Tensor:
        """Skip D x, gate, norm; y and x (batch, tokens, heads, head_dim), to (batch, tokens, width)."""
        skipped = torch.addcmul(y, x, self.D.unsqueeze(1)).flatten(2)
        normed: Tensor = self.norm(skipped * functional.silu(gate))
        return normed


class BiMamba(TokenMixer):
    """Two Mamba-2 mixers, one on the reversed tokens, a linear map per head of both, W^O.

    Each is Mamba-2 with expansion 1 and without its own output projection. At width 192 with 3
    heads 313,426 parameters, against attention's 148,224. Computes in float32 or float64.

    `plain` computes by the sequential scan, which does other work than the chunks that run (see
    `bimamba_costs`). Counters of FLOPs see all of the chunks' products; count without it.

    Args:
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head.
        state: size of the state per channel.
        conv: taps of the causal convolution.
        bidirectional: also read from the end; without it the map per head stays.

    Raises:
        ValueError: a width below 1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        head_dim: int,
        *,
        state: int = 128,
        conv: int = 4,
        bidirectional: bool = True,
    ) -> None:
        check("bimamba", d_model, n_heads, head_dim, {"state": state, "conv": conv})
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = head_dim
        self.state = state
        self.directions = nn.ModuleList(
            Direction(d_model, n_heads, head_dim, state, conv) for _ in range(1 + bidirectional)
        )
        both = len(self.directions) * head_dim
        self.head_proj = nn.Parameter(torch.empty(n_heads, both, head_dim))
        nn.init.uniform_(self.head_proj, -(both**-0.5), both**-0.5)  # as nn.Linear does
        self.proj = nn.Linear(n_heads * head_dim, d_model)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`.

        Raises:
            ValueError: a token follows padding.
        """
        lengths = lengths_of(key_padding_mask)
        # Padding is zero and takes steps of size zero: the reversed sequences, which begin with it,
        # come to their first token with an empty convolution and an empty state.
        x = zero_padding(x, lengths)
        ways = cast("list[Direction]", list(self.directions))
        parts = [way.project(_turn(x, i)) for i, way in enumerate(ways)]
        channels = functional.silu(torch.stack([part[1] for part in parts]))
        steps = functional.softplus(torch.stack([part[2] for part in parts]))
        if lengths is not None and key_padding_mask is not None:
            padding = torch.stack([_turn(key_padding_mask, i) for i in range(len(ways))])
            steps = steps.masked_fill(padding.unsqueeze(3), 0.0)
        width = self.n_heads * self.head_dim
        values, b, c = torch.split(channels, [width, self.state, self.state], -1)
        values = values.view(*values.shape[:3], self.n_heads, self.head_dim)
        rates = -torch.stack([way.A_log for way in ways]).exp()
        mix = choose(x.device, x.dtype, plain=self.plain)
        each = zip(ways, mix(values, steps, rates, b, c), values, parts, strict=True)
        finished = [way.finish(y, v, part[0]) for way, y, v, part in each]
        finished = [_turn(part, i) for i, part in enumerate(finished)]
        return zero_padding(self._per_head(finished), lengths)

    def _per_head(self, finished: list[Tensor]) -> Tensor:
        """Maps both directions' outputs to one, head by head."""
        by_head = [part.view(-1, self.n_heads, self.head_dim) for part in finished]
        both = torch.cat(by_head, -1)
        out = torch.bmm(both.transpose(0, 1), self.head_proj).transpose(0, 1)
        return out.reshape(finished[0].shape)


def _turn(x: Tensor, direction: int) -> Tensor:
    """The tokens in the order in which the direction reads them, and back."""
    return x.flip(1) if direction else x


def _log_uniform(n: int, low: float, high: float) -> Tensor:
    return torch.empty(n).uniform_(math.log(low), math.log(high)).exp()


def _inverse_softplus(x: Tensor) -> Tensor:
    return x + torch.log(-torch.expm1(-x))
