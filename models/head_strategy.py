"""Which way to compute the selected heads of a batch is cheapest: a small measured rule.

Every way multiplies the same matrices, k of n_heads for each input; they differ in what they move
and in how many operators they call. The costs below are nanoseconds on one thread of a 2.6 GHz
server core (AVX-512, 1 MiB of L2), fitted by hand to forward passes at d 64 to 768, 8 to 16 heads,
16 to 512 tokens and 1 or 32 inputs; only their ratios matter. `python -m benchmarks.attention_speed
--grid` shows on any machine how near to the ideal the chosen ways come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Strategy = Literal["dense", "bucket", "loop", "sample"]
"""How a batch is computed.

dense: every input wants every head, an ordinary layer.
bucket: inputs with equal k together, by batched products with gathered weights.
loop: head by head, for the inputs that want it, without gathering weights.
sample: input by input, each a small dense layer with its heads' weights.
"""

BUCKET_NS = 50_000
"""Calls of one bucket, or part of one: d 64, 16 tokens, 32 inputs, k = 1: 95 us, 47 of them work."""
LOOP_NS = 21_000
"""Calls for one head: the same batch head by head takes 216 us with 8 heads."""
SAMPLE_NS = 16_000
"""Calls for one input: the same batch input by input takes 560 us with 32 inputs."""
GATHER_NS = 0.3
"""One gathered weight, copied and then read from a cold place: d 512, 8 heads of 64, 32 tokens,
k = 4: 15.9 ms against 10.7 of work alone, for 16.8 million weights (0.23 to 0.39 elsewhere)."""
LOOP_WORD_NS = 0.8
"""One element of the inputs a head takes out and adds back in, and the narrower product's loss: the
same layer head by head takes 12.6 ms, for 2.1 million elements (0.55 to 1.1 elsewhere)."""
LOOP_WORD_GRADIENT_NS = 1.3
"""The same where a backward pass follows: forward and backward at d 256, 8 heads, 128 tokens, 32
inputs, k = 4 take 67 ms head by head and 64 in buckets; at d 512, 191 and 216."""
MOVE_NS = 0.4
"""One element that waits outside the nearest cache: a bucket's queries, keys, values and outputs (at
d 256, 16 heads, 256 tokens, k = 8, buckets take 2.5 ms more than input by input, for 4.2 million),
and a batch that is split into buckets and put together again."""

CACHE_BYTES = 4 * 2**20
"""What a part of a bucket may touch: 4 MiB were as good as 1 or better, by up to a tenth."""
CACHE_BYTES_GRADIENT = 4 * CACHE_BYTES
"""The same where a backward pass follows, in which each part writes a gradient as large as all the
layer's weights: at d 512, k = 2, 109 ms with 16 MiB, 131 with 4, 123 with 128."""


@dataclass(frozen=True)
class Geometry:
    """What a batch looks like to the rule.

    Attributes:
        n_heads: heads of the layer.
        head_dim: width of one head.
        d_model: width of the input.
        length: positions of each input, padding included.
        element_size: bytes of one number.
        on_cpu: whether it is computed where the costs were measured.
        gradients: whether a backward pass may follow.
    """

    n_heads: int
    head_dim: int
    d_model: int
    length: int
    element_size: int
    on_cpu: bool
    gradients: bool

    @property
    def head_words(self) -> int:
        """Weights of one head."""
        return 4 * self.head_dim * self.d_model


def choose(counts: Sequence[int], geometry: Geometry) -> Strategy:
    """The cheapest way for inputs that want `counts` heads each.

    On other devices than the CPU nothing has been measured; there it is buckets, which call the
    fewest operators.
    """
    n_heads = geometry.n_heads
    if min(counts, default=n_heads) == n_heads:
        return "dense"
    if not geometry.on_cpu:
        return "bucket"
    if len(counts) == 1:
        return "sample"
    expected = costs(counts, geometry)
    return min(expected, key=expected.__getitem__)


def costs(counts: Sequence[int], geometry: Geometry) -> dict[Strategy, float]:
    """Nanoseconds that each way spends beside the matrix products, which all share."""
    g = geometry
    batch, distinct = len(counts), set(counts)
    # heads that an input wants all of need no gathering where the input is computed apart
    gathered = sum(k for k in counts if k < g.n_heads)
    gather = GATHER_NS * gathered * g.head_words
    elements = g.length * g.d_model
    parts = sum(-(-counts.count(k) // per_part(k, g)) for k in distinct)
    bucket = BUCKET_NS * parts + gather
    bucket += MOVE_NS * 4 * gathered * g.head_dim * g.length
    if len(distinct) > 1:
        bucket += MOVE_NS * 2 * batch * elements
    sample = SAMPLE_NS * batch + gather
    if g.gradients:
        # each gathering's gradient is as large as all the layer's weights
        whole = 2 * GATHER_NS * g.n_heads * g.head_words
        bucket += parts * whole
        sample += batch * whole
    loop_word = LOOP_WORD_GRADIENT_NS if g.gradients else LOOP_WORD_NS
    loop = LOOP_NS * min(g.n_heads, sum(counts)) + loop_word * sum(counts) * elements
    return {"bucket": bucket, "loop": loop, "sample": sample}


def per_part(k: int, geometry: Geometry) -> int:
    """Inputs with k heads that are computed together: as many as the cache holds."""
    g = geometry
    if not g.on_cpu or k == g.n_heads:
        return 2**62
    words = k * g.head_words + g.length * (2 * g.d_model + 4 * k * g.head_dim)
    fits = CACHE_BYTES_GRADIENT if g.gradients else CACHE_BYTES
    return max(1, fits // (words * g.element_size))
