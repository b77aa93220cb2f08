"""Attention weights of a model as it runs, recomputed layer by layer and measured at once.

Fused attention shows no weights, but queries and keys follow from what its projection gives, and
the weights from these by the plain definition. Only measures outlast a batch, so memory does not
grow with the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.sparsity.measures import MEASURES
from models.dense import SelfAttention
from models.mixers.attention import Attention

MOST_WEIGHTS = 2**22
"""Attention weights held at once, unless those of one head of one input are more."""


@dataclass(frozen=True)
class LayerMaps:
    """Measures of one layer's weights on one batch; not a number where an input has none.

    Attributes:
        all_queries: measure to (batch, heads), mean over an input's queries.
        first_query: measure to (batch, heads), of the query in the first place.
        first_row: (batch, tokens), weights of the query in the first place, mean over heads.
    """

    all_queries: dict[str, Tensor]
    first_query: dict[str, Tensor]
    first_row: Tensor


def has_maps(layer: nn.Module | None) -> bool:
    """Whether a layer is attention with all heads, whose weights can be recomputed."""
    return type(layer) in (Attention, SelfAttention)


@contextmanager
def projections(layers: Sequence[nn.Module | None]) -> Iterator[dict[int, Tensor]]:
    """Inside, each forward pass leaves the joint projection of each layer that has maps.

    Args:
        layers: one for each layer of the model.

    Yields:
        By the layer's index: (batch, tokens, 3 * heads * head_dim), or with the tokens of all
        inputs one behind the other where the model packs them. A layer that was not run is not
        there.
    """
    found: dict[int, Tensor] = {}

    def keeper(index: int) -> Callable[[nn.Module, Any, Tensor], None]:
        def keep(module: nn.Module, args: Any, output: Tensor) -> None:
            del module, args
            found[index] = output

        return keep

    handles = [
        layer.get_submodule("qkv").register_forward_hook(keeper(index))
        for index, layer in enumerate(layers)
        if layer is not None and has_maps(layer)
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def queries_and_keys(layer: nn.Module | None, qkv: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """(batch, heads, tokens, head_dim) twice, zero where a packed model computed nothing.

    Args:
        layer: one that has maps.
        qkv: its joint projection, see `projections`.
        real: (batch, tokens) bool, the places that hold a token.

    Raises:
        TypeError: the layer has no maps.
        ValueError: the projection is neither of all places nor of those that hold a token.
    """
    if not isinstance(layer, Attention | SelfAttention):
        raise TypeError(f"{type(layer).__name__} has no attention weights")
    rows = qkv.flatten(0, -2)
    if len(rows) != real.numel():
        if len(rows) != int(real.sum()):
            raise ValueError(
                f"{len(rows)} tokens were projected, of {int(real.sum())} that are kept"
            )
        scattered = rows.new_zeros(*real.shape, rows.shape[1])
        scattered[real] = rows
        rows = scattered
    if isinstance(layer, SelfAttention):
        parts = rows.view(*real.shape, layer.n_heads, 3, layer.head_dim).permute(3, 0, 2, 1, 4)
    else:
        parts = rows.view(*real.shape, 3, layer.n_heads, layer.head_dim).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1]


def measured(q: Tensor, k: Tensor, real: Tensor) -> LayerMaps:
    """Measures of softmax(q k^T / sqrt(head_dim)) over the places that hold a token.

    Args:
        q: queries (batch, heads, tokens, head_dim).
        k: keys, likewise.
        real: (batch, tokens) bool, the places that hold a token.
    """
    batch, n_heads, tokens, head_dim = q.shape
    hidden = ~real.repeat_interleave(n_heads, 0)
    n_keys = tokens - hidden.sum(1, keepdim=True)
    # a softmax over nothing is not a number; an input without tokens has no measures anyway
    bias = torch.zeros(hidden.shape).masked_fill(hidden & (n_keys > 0), float("-inf"))
    queries, keys = q.flatten(0, 1) * head_dim**-0.5, k.flatten(0, 1)
    step = max(1, MOST_WEIGHTS // (tokens * tokens))
    means: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    firsts: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    rows: list[Tensor] = []
    for at in range(0, batch * n_heads, step):
        part = slice(at, at + step)
        scores = queries[part] @ keys[part].transpose(1, 2) + bias[part, None]
        weights = scores.softmax(-1)
        rows.append(weights[:, 0])
        for name, measure in MEASURES.items():
            values = measure(weights, n_keys[part]).masked_fill(hidden[part], float("nan"))
            means[name].append(values.nanmean(1))
            firsts[name].append(values[:, 0])

    def by_head(parts: list[Tensor]) -> Tensor:
        joined = torch.cat(parts)
        return joined.view(batch, n_heads, *joined.shape[1:])

    return LayerMaps(
        all_queries={name: by_head(parts) for name, parts in means.items()},
        first_query={name: by_head(parts) for name, parts in firsts.items()},
        first_row=by_head(rows).mean(1),
    )
