"""Cost of the bidirectional Mamba-2 mixer by formula, without torch.

What is counted is the chunked form that runs (`ssd.ssd_chunked`), the upper triangles that it
computes and drops included. `scan` counts the sequential form, the figure usual in the literature;
at width 192 with 197 tokens the chunked core does 1.1 times that, and takes a fifth of the time.
"""

from __future__ import annotations

LONGEST_SINGLE = 100
"""Tokens up to which one chunk is fastest."""
LONGEST_CHUNK = 64
"""Longest chunk of a longer sequence."""


def chunk_length(tokens: int) -> int:
    """Tokens per chunk: as even as possible, and dependent on nothing but the sequence's length.

    Measured at width 192 with a state of 128: from 50 to 100 tokens per chunk the time is within
    5 % of the best; shorter chunks pass on more states, longer ones have longer triangles.
    """
    if tokens <= LONGEST_SINGLE:
        return max(tokens, 1)
    return -(-tokens // -(-tokens // LONGEST_CHUNK))


def core(tokens: int, n_heads: int, head_dim: int, state: int, conv: int, directions: int) -> float:
    """MACs of the convolutions and of the state-space core as they run, for one input.

    Args:
        tokens: of the input.
        n_heads: heads.
        head_dim: width of a head.
        state: size of the state per channel.
        conv: taps of the causal convolution.
        directions: 2, or 1 for one way.
    """
    width = n_heads * head_dim
    full, last = divmod(tokens, chunk_length(tokens))
    sizes = [chunk_length(tokens)] * full + ([last] if last else [])
    within = sum(size * size * (state + width) for size in sizes)
    # every chunk but the last hands a state on, every chunk but the first takes one up
    handed_on = sum(sizes[:-1]) * state * width
    taken_up = sum(sizes[1:]) * state * width
    return float(directions * (within + handed_on + taken_up)) + convolution(
        tokens, n_heads, head_dim, state, conv, directions
    )


def scan(tokens: int, n_heads: int, head_dim: int, state: int, conv: int, directions: int) -> float:
    """The same of the sequential scan: per token the state takes one outer product and is read."""
    width = n_heads * head_dim
    return float(directions * tokens * 2 * state * width) + convolution(
        tokens, n_heads, head_dim, state, conv, directions
    )


def convolution(
    tokens: int, n_heads: int, head_dim: int, state: int, conv: int, directions: int
) -> float:
    """MACs of the convolutions, which run on beyond the last token by their length; 0 of no token."""
    if tokens == 0:
        return 0.0
    channels = n_heads * head_dim + 2 * state
    return float(directions * (tokens + conv - 1) * channels * conv)


def projections(
    tokens: int, d_model: int, n_heads: int, head_dim: int, state: int, directions: int
) -> float:
    """MACs of the input projections, of the map per head and of W^O."""
    width = n_heads * head_dim
    inputs = directions * d_model * (2 * width + 2 * state + n_heads)
    return float(tokens * (inputs + directions * width * head_dim + width * d_model))


def elementwise(
    tokens: int, d_model: int, n_heads: int, head_dim: int, state: int, directions: int
) -> float:
    """Operations beside matrix products: SiLU, softplus, decays, gate, norm, skip and biases.

    Each transcendental function and each arithmetic operation counts one, as in `models.costs`.
    """
    width, size = n_heads * head_dim, chunk_length(tokens)
    steps = 4 * n_heads + n_heads * 8  # bias and softplus; decay, running sum, two exponentials
    silu = 4 * (2 * width + 2 * state)  # of the convolution's output and of the gate
    scaling, skip, gate, norm = 2 * width, 2 * width, width, 5 * width
    handed_on = max(-(-tokens // size) - 1, 0) * state * width
    per_token = steps + silu + scaling + skip + gate + norm
    return float(directions * (tokens * per_token + handed_on) + tokens * d_model)


def parameters(
    d_model: int, n_heads: int, head_dim: int, state: int, conv: int, directions: int
) -> int:
    """Number of parameters, W^O included; 313,426 at width 192 with 3 heads."""
    width = n_heads * head_dim
    convolved = width + 2 * state
    one_way = d_model * (width + convolved + n_heads) + convolved * (conv + 1) + 3 * n_heads + width
    return directions * (one_way + width * head_dim) + (width + 1) * d_model
