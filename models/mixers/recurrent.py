"""A small recurrent network per head and direction: what the LSTM and GRU mixers share.

Heads never see each other before W^O, so the weights of all heads together are block-diagonal; only
the blocks exist here. S2S (arXiv 2605.18865) replaces attention by such modules.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from models.mixers.interface import TokenMixer
from models.mixers.names import check
from models.mixers.padding import lengths_of, zero_padding


class HeadProjection(nn.Module):
    """A linear map per head; stored as (heads, out, in)."""

    def __init__(self, n_heads: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_out, d_in))
        self.bias = nn.Parameter(torch.empty(n_heads, d_out))
        bound = d_in**-0.5  # as nn.Linear does
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, heads: list[Tensor]) -> list[Tensor]:
        """One (batch, tokens, in) to one (batch, tokens, out) per head."""
        maps = zip(heads, self.weight.unbind(0), self.bias.unbind(0), strict=True)
        return [nn.functional.linear(x, weight, bias) for x, weight, bias in maps]


class MultiHeadRecurrence(TokenMixer):
    """A recurrent network per head and direction; see `BiLSTM` and `BiGRU`.

    Weights are stored as (heads, directions, gates * hidden, in), biases without the last; gates
    come in torch's order, the forward direction first.

    Attributes:
        kind: name in `models.mixers.names`.
        projected: put a linear map of all channels before the recurrence, and one per head after
            it; without them `n_heads * head_dim` is `d_model`, and a state's width times the
            directions is `head_dim`.

    Args:
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head's input and output.
        bidirectional: also read from the end.

    Raises:
        ValueError: a geometry that the kind cannot have.
    """

    kind: ClassVar[str]
    n_gates: ClassVar[int]
    projected: ClassVar[bool] = True

    def __init__(
        self, d_model: int, n_heads: int, head_dim: int, *, bidirectional: bool = True
    ) -> None:
        check(self.kind, d_model, n_heads, head_dim, {"bidirectional": bidirectional})
        super().__init__()
        hidden = self.width_of_state(head_dim, bidirectional=bidirectional)
        self.n_heads = n_heads
        self.hidden = hidden
        self.directions = 2 if bidirectional else 1
        rows = self.n_gates * hidden
        networks = (n_heads, self.directions)
        self.pre = nn.Linear(d_model, n_heads * head_dim) if self.projected else None
        self.weight_ih = nn.Parameter(torch.empty(*networks, rows, head_dim))
        self.weight_hh = nn.Parameter(torch.empty(*networks, rows, hidden))
        self.bias_ih = nn.Parameter(torch.empty(*networks, rows))
        self.bias_hh = nn.Parameter(torch.empty(*networks, rows))
        self.head_proj = (
            HeadProjection(n_heads, self.directions * hidden, head_dim) if self.projected else None
        )
        self.proj = nn.Linear(n_heads * head_dim, d_model)
        for parameter in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh):
            nn.init.uniform_(parameter, -(hidden**-0.5), hidden**-0.5)  # as nn.LSTM and nn.GRU do

    @classmethod
    def width_of_state(cls, head_dim: int, *, bidirectional: bool) -> int:
        """Width of a head's state in one direction."""
        del bidirectional
        return head_dim

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`.

        Raises:
            ValueError: a token follows padding.
        """
        lengths = lengths_of(key_padding_mask)
        inputs = x if self.pre is None else self.pre(x)
        heads = self.by_definition(inputs, lengths) if self.plain else self.states(inputs, lengths)
        if self.head_proj is not None:
            heads = self.head_proj(heads)
        return zero_padding(torch.cat(heads, -1), lengths)

    @abstractmethod
    def states(self, inputs: Tensor, lengths: Tensor | None) -> list[Tensor]:
        """The states of all heads after each token, by the fastest way.

        Args:
            inputs: (batch, tokens, n_heads * head_dim).
            lengths: see `padding.lengths_of`.

        Returns:
            Per head (batch, tokens, directions * hidden); of no meaning at padding.
        """

    @abstractmethod
    def step(
        self, from_input: Tensor, from_state: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """One token of one network, by the definition.

        Args:
            from_input: (batch, gates * hidden), W_ih x + b_ih.
            from_state: (batch, gates * hidden), W_hh h + b_hh.
            state: h (batch, hidden), and what else is remembered, before the token.

        Returns:
            The same after it.
        """

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many vectors a network remembers."""

    def by_definition(self, inputs: Tensor, lengths: Tensor | None) -> list[Tensor]:
        """See `states`; the plain reference, one network and one token after another."""
        heads = []
        for head, part in enumerate(inputs.chunk(self.n_heads, -1)):
            ways = [self._walk(part, head, way, lengths) for way in range(self.directions)]
            heads.append(torch.cat(ways, -1))
        return heads

    def _walk(self, x: Tensor, head: int, way: int, lengths: Tensor | None) -> Tensor:
        tokens = x.shape[1]
        weight_ih, bias_ih = self.weight_ih[head, way], self.bias_ih[head, way]
        weight_hh, bias_hh = self.weight_hh[head, way], self.bias_hh[head, way]
        zero = x.new_zeros(x.shape[0], self.hidden)
        state: tuple[Tensor, ...] = (zero,) * self.n_states
        after = [zero] * tokens
        for t in reversed(range(tokens)) if way else range(tokens):
            from_input = nn.functional.linear(x[:, t], weight_ih, bias_ih)
            from_state = nn.functional.linear(state[0], weight_hh, bias_hh)
            new = self.step(from_input, from_state, state)
            if lengths is not None:  # padding changes no state
                real = (t < lengths)[:, None]
                new = tuple(torch.where(real, a, b) for a, b in zip(new, state, strict=True))
            state = new
            after[t] = state[0]
        return torch.stack(after, 1)
