"""Control: trained and tested with random heads, as many as a trained BudgetFormer uses.

It has neither budget network nor scorer. If it is as accurate as BudgetFormer at the same mean k,
adapting the heads to the input is worth nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from models.encoder import EncoderClassifier, LayerHeads, Shared
from models.head_budget import first_of
from models.selected_heads import SelectiveAttention

if TYPE_CHECKING:
    from models.random_trained_config import RandomTrainedConfig


class RandomHeadsAttention(SelectiveAttention):
    """Draws k from the layer's histogram, then k heads uniformly, for every input."""

    def __init__(
        self, config: RandomTrainedConfig, histogram: tuple[int, ...], generator: torch.Generator
    ) -> None:
        super().__init__(config.d_model, config.n_heads, config.width_of_head)
        self.histogram = torch.tensor(histogram, dtype=torch.float64)
        self.generator = generator

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads]:
        """See `AttentionLayer.forward`; the gates are 0 or 1 in every mode."""
        batch = x.shape[0]
        k = torch.multinomial(self.histogram, batch, replacement=True, generator=self.generator)
        order = torch.rand(batch, self.n_heads, generator=self.generator).argsort(1)
        k, order = k.to(x.device), order.to(x.device)
        chosen = first_of(order, k)
        heads = LayerHeads(
            budget=k.to(x.dtype) / self.n_heads,
            scores=chosen.to(x.dtype) / k.unsqueeze(1),
            k=k,
            order=order,
        )
        if shared.head_mode == "masked":
            return self.gated(x, chosen.to(x.dtype), shared), heads
        return self.selected(x, order, k, shared), heads


class RandomTrained(EncoderClassifier):
    """The encoder classifier with random heads in every layer, in training and at inference."""

    def __init__(self, config: RandomTrainedConfig) -> None:
        if not config.k_histogram:
            raise ValueError(
                "random-trained has no k_histogram yet: resolve its configuration from a trained "
                "source first"
            )
        generator = torch.Generator()
        super().__init__(
            config, [RandomHeadsAttention(config, row, generator) for row in config.k_histogram]
        )
        self.generator = generator
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Restarts the draws of k and of heads."""
        self.generator.manual_seed(seed)
