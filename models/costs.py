"""Cost of the encoders' parts by formula; every config's `macs` is put together from these.

All counts are for one input of `length` tokens, padding excluded. Matrix-multiply work is in
multiply-accumulates (MACs), the elementwise column in floating-point operations. Embedding look-ups
cost nothing. What one element of a norm, softmax or GELU costs has no standard; the constants below
are ours: each transcendental function and each arithmetic operation counts one.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.config import EncoderConfig, Macs

NORM_OPS = 7  # mean, difference, square, mean, divide, scale, shift
SOFTMAX_OPS = 5  # scale, maximum, difference with exponential, sum, divide
GELU_OPS = 5  # scale, erf, add, multiply, halve


def projections(length: int, d_model: int, head_dim: int, heads: int) -> float:
    """MACs of the Q, K, V and output projections of `heads` heads."""
    return float(4 * length * d_model * heads * head_dim)


def core(length: int, head_dim: int, heads: int) -> float:
    """MACs of the scores and of the weighted sum of values of `heads` heads."""
    return float(2 * length * length * heads * head_dim)


def attention_elementwise(length: int, d_model: int, head_dim: int, heads: int) -> float:
    """Operations of an attention sub-layer: norm, softmax, biases and the residual sum."""
    softmax = SOFTMAX_OPS * heads * length * length
    return float(softmax + length * (3 * heads * head_dim + (NORM_OPS + 2) * d_model))


def feed_forward(length: int, d_model: int, d_ff: int) -> float:
    """MACs of the two feed-forward matrices."""
    return float(2 * length * d_model * d_ff)


def feed_forward_elementwise(length: int, d_model: int, d_ff: int) -> float:
    """Operations of a feed-forward sub-layer: norm, GELU, biases and the residual sum."""
    return float(length * ((GELU_OPS + 1) * d_ff + (NORM_OPS + 2) * d_model))


def controller(length: int, d_model: int, width: int, n_heads: int) -> float:
    """MACs of one layer's controllers: mean pool, head scorer, budget network (width 0: none)."""
    return float(length * d_model + d_model * width + width + d_model * n_heads)


def controller_elementwise(width: int, n_heads: int) -> float:
    """Operations of one layer's controllers: GELU, sigmoid, softmax, rounding and biases."""
    budget_network = (GELU_OPS + 1) * width + 4 if width else 0
    return float(budget_network + (SOFTMAX_OPS + 1) * n_heads + 2)


def classifier(length: int, d_model: int, n_classes: int) -> float:
    """MACs of the final mean pool and the linear head."""
    return float(length * d_model + d_model * n_classes)


def encoder(
    config: EncoderConfig,
    length: int,
    heads: Sequence[int],
    *,
    attention: bool = True,
    controller_width: int | None = None,
) -> Macs:
    """Cost of a whole encoder.

    Args:
        config: geometry.
        length: tokens of the input.
        heads: heads computed in each layer.
        attention: whether the layers have an attention sub-layer at all.
        controller_width: hidden width of each layer's budget network; None: no controllers.

    Raises:
        ValueError: `heads` does not have one entry per layer.
    """
    d, hd, d_ff = config.d_model, config.width_of_head, config.width_of_ffn
    if len(heads) != config.depth:
        raise ValueError(f"k must have one entry per layer ({config.depth}), not {len(heads)}")
    embeddings_summed = 2 if config.n_segments > 1 else 1
    elementwise = float(length * d * (embeddings_summed + NORM_OPS) + config.n_classes)
    elementwise += config.depth * feed_forward_elementwise(length, d, d_ff)
    if attention:
        elementwise += sum(attention_elementwise(length, d, hd, k) for k in heads)
    if controller_width is not None:
        elementwise += config.depth * controller_elementwise(controller_width, config.n_heads)
    return Macs(
        attention_core=sum(core(length, hd, k) for k in heads) if attention else 0.0,
        attention_projections=(
            sum(projections(length, d, hd, k) for k in heads) if attention else 0.0
        ),
        controllers=(
            0.0
            if controller_width is None
            else config.depth * controller(length, d, controller_width, config.n_heads)
        ),
        feed_forward=config.depth * feed_forward(length, d, d_ff),
        classifier=classifier(length, d, config.n_classes),
        elementwise=elementwise,
    )
