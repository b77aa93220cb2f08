"""Cost and parameters of each mixer by formula, without torch.

Counts are for one input of `tokens` tokens, padding excluded, and of the mixer alone: the block's
norm and residual sum are not among them. Matrix-multiply work is in multiply-accumulates (MACs),
elementwise work in operations as `models.costs` counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from models.costs import SOFTMAX_OPS, core, projections
from models.mixers import bimamba_costs
from models.mixers.names import check

SIGMOID_OPS = 4  # negate, exponential, add, divide
ELU_OPS = 3  # exponential, subtract, choose
LSTM_GATES, LSTM_OPS = 4, 4 * 3 + 3 * SIGMOID_OPS + 1 + 3 + 2  # sums, gates, tanh, cell, state
GRU_GATES, GRU_OPS = 3, 2 * 3 + 2 + 2 * SIGMOID_OPS + 2 + 1 + 3  # sums, gates, candidate, state


@dataclass(frozen=True)
class MixerCost:
    """What one mixer does for one input.

    Attributes:
        core: MACs of the mixing itself: scores and weighted sum, recurrences, scan, convolution.
        projections: MACs of the linear maps around it, W^O included.
        elementwise: operations of softmax, gates, biases and the like.
    """

    core: float
    projections: float
    elementwise: float

    @property
    def macs(self) -> float:
        """Core and projections."""
        return self.core + self.projections


def cost(
    kind: str, tokens: int, d_model: int, n_heads: int, head_dim: int, **options: Any
) -> MixerCost:
    """Cost of a mixer.

    Args:
        kind: see `names.KINDS`.
        tokens: of the input.
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head.
        options: the kind's own.

    Raises:
        ValueError: there is no such kind or option, or it cannot have this geometry.
    """
    resolved = check(kind, d_model, n_heads, head_dim, options)
    return _COSTS[kind](tokens, d_model, n_heads, head_dim, resolved)


def parameters(kind: str, d_model: int, n_heads: int, head_dim: int, **options: Any) -> int:
    """Number of parameters of a mixer, W^O included; see `cost`."""
    resolved = check(kind, d_model, n_heads, head_dim, options)
    return _PARAMETERS[kind](d_model, n_heads, head_dim, resolved)


def _attention(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    del options
    softmax = SOFTMAX_OPS * n_heads * tokens * tokens
    return MixerCost(
        core(tokens, head_dim, n_heads),
        projections(tokens, d_model, head_dim, n_heads),
        float(softmax + tokens * (3 * n_heads * head_dim + d_model)),
    )


def _linear_attention(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    del options
    width = n_heads * head_dim
    # keys with values and queries with that; queries with the sum of keys
    products = tokens * width * (2 * head_dim + 1)
    feature_maps = 2 * (ELU_OPS + 1)
    ops = width * (3 + feature_maps + 2) + n_heads + d_model  # biases, maps, sum of keys, division
    return MixerCost(
        float(products), projections(tokens, d_model, head_dim, n_heads), float(tokens * ops)
    )


def _recurrence(
    gates: int, ops: int, *, projected: bool
) -> Callable[[int, int, int, int, dict[str, Any]], MixerCost]:
    def of(
        tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
    ) -> MixerCost:
        width = n_heads * head_dim
        networks, hidden = _networks(n_heads, head_dim, options, projected=projected)
        linear, biases = width * d_model, d_model
        if projected:
            linear += d_model * width + networks * hidden * head_dim
            biases += 2 * width
        return MixerCost(
            float(tokens * networks * gates * hidden * (head_dim + hidden)),
            float(tokens * linear),
            float(tokens * (networks * hidden * ops + biases)),
        )

    return of


def _recurrence_parameters(
    gates: int, *, projected: bool
) -> Callable[[int, int, int, dict[str, Any]], int]:
    def of(d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]) -> int:
        width = n_heads * head_dim
        networks, hidden = _networks(n_heads, head_dim, options, projected=projected)
        total = networks * gates * hidden * (head_dim + hidden + 2) + (width + 1) * d_model
        if projected:
            total += (d_model + 1) * width + networks * hidden * head_dim + width
        return total

    return of


def _networks(
    n_heads: int, head_dim: int, options: dict[str, Any], *, projected: bool
) -> tuple[int, int]:
    """How many recurrent networks there are, and how wide the state of one is."""
    directions = _directions(options)
    return n_heads * directions, head_dim if projected else head_dim // directions


def _directions(options: dict[str, Any]) -> int:
    return 2 if options["bidirectional"] else 1


def _bimamba(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    state, conv, ways = options["state"], options["conv"], _directions(options)
    around = (tokens, d_model, n_heads, head_dim, state, ways)
    return MixerCost(
        bimamba_costs.core(tokens, n_heads, head_dim, state, conv, ways),
        bimamba_costs.projections(*around),
        bimamba_costs.elementwise(*around),
    )


def _bimamba_parameters(d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]) -> int:
    state, conv, ways = options["state"], options["conv"], _directions(options)
    return bimamba_costs.parameters(d_model, n_heads, head_dim, state, conv, ways)


def _conv(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    width = n_heads * head_dim
    return MixerCost(
        float(tokens * width * options["kernel_size"]),
        float(2 * tokens * d_model * width),
        float(tokens * (2 * width + d_model)),
    )


def _mean(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    del n_heads, head_dim, options
    return MixerCost(
        float(tokens * d_model), float(tokens * d_model * d_model), float(tokens * d_model)
    )


def _identity(
    tokens: int, d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]
) -> MixerCost:
    del tokens, d_model, n_heads, head_dim, options
    return MixerCost(0.0, 0.0, 0.0)


def _fused(d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]) -> int:
    """Joint projection of queries, keys and values, and W^O."""
    del options
    width = n_heads * head_dim
    return (d_model + 1) * 3 * width + (width + 1) * d_model


def _conv_parameters(d_model: int, n_heads: int, head_dim: int, options: dict[str, Any]) -> int:
    width, kernel_size = n_heads * head_dim, int(options["kernel_size"])
    return (d_model + 1) * width + width * (kernel_size + 1) + (width + 1) * d_model


_COSTS: dict[str, Callable[[int, int, int, int, dict[str, Any]], MixerCost]] = {
    "attention": _attention,
    "linear-attention": _linear_attention,
    "bilstm": _recurrence(LSTM_GATES, LSTM_OPS, projected=True),
    "bilstm-half": _recurrence(LSTM_GATES, LSTM_OPS, projected=False),
    "bigru": _recurrence(GRU_GATES, GRU_OPS, projected=True),
    "bimamba": _bimamba,
    "conv": _conv,
    "mean": _mean,
    "identity": _identity,
}

_PARAMETERS: dict[str, Callable[[int, int, int, dict[str, Any]], int]] = {
    "attention": _fused,
    "linear-attention": _fused,
    "bilstm": _recurrence_parameters(LSTM_GATES, projected=True),
    "bilstm-half": _recurrence_parameters(LSTM_GATES, projected=False),
    "bigru": _recurrence_parameters(GRU_GATES, projected=True),
    "bimamba": _bimamba_parameters,
    "conv": _conv_parameters,
    "mean": lambda d_model, *_: (d_model + 1) * d_model,
    "identity": lambda *_: 0,
}
