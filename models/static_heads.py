"""Control: one choice of heads for all inputs, the most important ones of a trained dense model.

If it is as accurate as BudgetFormer at the same mean k, choosing heads for each input is worth
nothing. Importance of head h: I_h = E_x |dL(x)/d xi_h|, where xi_h = 1 multiplies the head's output
(Michel et al. 2019, arXiv 1905.10650, "Are Sixteen Heads Really Better than One?").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from models.encoder import EncoderClassifier, LayerHeads, Shared
from models.head_budget import first_of
from models.selected_heads import SelectiveAttention
from models.state_dict import fill

if TYPE_CHECKING:
    from models.static_heads_config import StaticHeadsConfig


class StaticAttention(SelectiveAttention):
    """Self-attention that computes its most important heads.

    Attributes:
        importance: (n_heads,) kept with the weights.
        best: (n_heads,) int64, heads from the most important to the least; likewise.
        probe: (batch, n_heads) weights of all heads, while their importance is measured.
    """

    importance: Tensor
    best: Tensor
    probe: Tensor | None = None

    def __init__(
        self, config: StaticHeadsConfig, histogram: tuple[int, ...], generator: torch.Generator
    ) -> None:
        super().__init__(config.d_model, config.n_heads, config.width_of_head)
        self.register_buffer("importance", torch.zeros(config.n_heads))
        self.register_buffer("best", torch.arange(config.n_heads))
        self.edges = torch.tensor(histogram, dtype=torch.float64).cumsum(0)
        self.generator = generator

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads]:
        """See `AttentionLayer.forward`; the gates are 0 or 1 in every mode."""
        k = spread_evenly(self.edges, len(x), self.generator).to(x.device)
        order = self.best.expand(len(x), -1)
        chosen = first_of(order, k).to(x.dtype)
        heads = LayerHeads(
            budget=k.to(x.dtype) / self.n_heads, scores=chosen / k.unsqueeze(1), k=k, order=order
        )
        if self.probe is not None:
            return self.gated(x, self.probe, shared), heads
        if shared.head_mode == "masked":
            return self.gated(x, chosen, shared), heads
        return self._pruned(x, k, shared), heads

    def set_importance(self, importance: Tensor) -> None:
        """Chooses heads by importance (n_heads,)."""
        self.importance.copy_(importance)
        self.best.copy_(torch.argsort(importance, descending=True, stable=True))

    def _pruned(self, x: Tensor, k: Tensor, shared: Shared) -> Tensor:
        """Each group of inputs with one k as a small dense layer."""
        counts = sorted(set(k.tolist()))
        if len(counts) == 1:
            heads = self.best[: counts[0]]
            return self.of_heads(x, heads, shared.bias, plain=shared.plain_attention)
        out = torch.zeros_like(x)
        for count in counts:
            rows = (k == count).nonzero().squeeze(1)
            bias = None if shared.bias is None else shared.bias[rows]
            part = self.of_heads(x[rows], self.best[:count], bias, plain=shared.plain_attention)
            out = out.index_copy(0, rows, part)
        return out


def spread_evenly(edges: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Draws k for n inputs, (n,) int64: whose k is whose is random, how often each occurs is not.

    The inputs take n evenly spaced places in the cumulated histogram, in random order and from a
    random start, so that each share is met up to one input in every batch, and exactly on average.

    Args:
        edges: float64, entry k = cumulated weight of 0 to k heads.
        n: inputs.
        generator: what is random.
    """
    start = torch.rand(1, generator=generator, dtype=torch.float64)
    places = (torch.randperm(n, generator=generator) + start) * (edges[-1] / max(1, n))
    # rounding may take the last place to the end itself, where the greatest k stands too
    inside = places.clamp(max=float(edges[-1]) * (1 - 1e-15))
    return torch.searchsorted(edges, inside, right=True)


class StaticHeads(EncoderClassifier):
    """The encoder classifier with the same heads for every input."""

    config: StaticHeadsConfig

    def __init__(self, config: StaticHeadsConfig) -> None:
        every = (0,) * config.n_heads + (1,)
        rows = config.k_histogram or (every,) * config.depth
        generator = torch.Generator()
        super().__init__(config, [StaticAttention(config, row, generator) for row in rows])
        self.generator = generator
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Restarts the draws of which inputs get the greater k."""
        self.generator.manual_seed(seed)

    def start_from(self, state: Mapping[str, Tensor]) -> None:
        """Takes over a dense encoder's weights, and leaves the choice of heads as it is.

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        own = [name for name in self.state_dict() if name.endswith((".importance", ".best"))]
        fill(self, state, fresh=own)

    def set_importance(self, importance: Tensor) -> None:
        """Chooses heads by importance (depth, n_heads)."""
        for layer, row in zip(self._layers(), importance, strict=True):
            layer.set_importance(row)

    def head_gradients(
        self,
        input_ids: Tensor,
        key_padding_mask: Tensor,
        segment_ids: Tensor | None,
        labels: Tensor,
    ) -> Tensor:
        """dL(x)/d xi_h of each input, (batch, depth, n_heads), at xi = 1 with all heads running.

        Args:
            input_ids: as `forward` takes them.
            key_padding_mask: likewise.
            segment_ids: likewise.
            labels: (batch,) int64; L is the cross-entropy with them.
        """
        layers = self._layers()
        shape = (len(input_ids), self.config.n_heads)
        probes = [torch.ones(shape, requires_grad=True) for _ in layers]
        try:
            for layer, probe in zip(layers, probes, strict=True):
                layer.probe = probe
            logits = self(input_ids, key_padding_mask, segment_ids).logits
            # inputs do not mix, so the gradient of the sum is each input's own
            loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
            return torch.stack(torch.autograd.grad(loss, probes), 1)
        finally:
            for layer in layers:
                layer.probe = None

    def _layers(self) -> list[StaticAttention]:
        return [cast(StaticAttention, block.attention) for block in self.blocks]
