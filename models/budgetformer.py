"""BudgetFormer: adaptive head budgets in every attention layer (arXiv 2604.22583).

In training all heads run and are weighted softly, so that gradients reach both controllers. At
inference only the selected heads are computed, at unit gate; that the gates differ between the two
is the method's, and `head_mode = "soft"` in eval mode shows what it costs. With `keep_gate` the
selected heads keep their weight, so that only the loss of the others is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from models.encoder import EncoderClassifier, LayerHeads, Shared
from models.head_budget import (
    HeadBudget,
    best_first,
    budget_loss,
    first_of,
    heads_for,
    relative_entropy,
    soft_gates,
)
from models.selected_heads import SelectiveAttention

if TYPE_CHECKING:
    from models.budgetformer_config import BudgetFormerConfig
    from models.interface import ClassifierOutput


class BudgetAttention(SelectiveAttention):
    """Self-attention with a head budget per input.

    Attributes:
        tau: present temperature of the softmax over heads.
        noise: present standard deviation of the noise on the scorer's logits, in training only.
    """

    def __init__(self, config: BudgetFormerConfig, generator: torch.Generator) -> None:
        super().__init__(config.d_model, config.n_heads, config.width_of_head)
        self.controller = self.build_controller(config)
        self.rounding = config.rounding
        self.gate = config.gate
        self.keep_gate = config.keep_gate
        self.fixed_k = config.fixed_k
        self.tau = config.tau.end
        self.noise = config.noise.end
        self.generator = generator

    @staticmethod
    def build_controller(config: BudgetFormerConfig) -> nn.Module:
        """What maps pooled inputs, noise and tau to s (batch,) and p (batch, n_heads)."""
        return HeadBudget(
            config.d_model, config.width_of_controller, config.n_heads, config.initial_budget
        )

    def order(self, p: Tensor) -> Tensor:
        """Each input's heads, those to compute first."""
        return best_first(p)

    def decide(self, x: Tensor, shared: Shared) -> LayerHeads:
        """The decision for x (batch, length, d_model)."""
        s, p = self.controller(shared.pool(x), self._noise(x), self.tau)
        k = (
            heads_for(s, self.n_heads, self.rounding)
            if self.fixed_k is None
            else torch.full_like(s, self.fixed_k, dtype=torch.int64)
        )
        return LayerHeads(budget=s, scores=p, k=k, order=self.order(p))

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads]:
        """See `AttentionLayer.forward`; soft, hard and masked mode share one decision."""
        heads = self.decide(x, shared)
        if shared.head_mode == "soft":
            return self.gated(x, self.gates(heads), shared), heads
        if shared.head_mode == "hard" and not self.keep_gate:
            return self.selected(x, heads.order, heads.k, shared), heads
        chosen = first_of(heads.order, heads.k)
        gates = chosen.to(x.dtype)
        if self.keep_gate:
            gates = gates * self.gates(heads)
        if shared.head_mode == "masked":
            return self.gated(x, gates, shared), heads
        return self.weighted(x, chosen, gates, shared), heads

    def gates(self, heads: LayerHeads) -> Tensor:
        """Training's weight of every head, (batch, n_heads)."""
        return soft_gates(heads.budget, heads.scores, self.gate)

    def _noise(self, x: Tensor) -> Tensor | None:
        if not self.training or self.noise == 0.0:
            return None
        # drawn on the CPU, so that a seed means the same noise on every device
        drawn = torch.randn(x.shape[0], self.n_heads, generator=self.generator)
        return (drawn * self.noise).to(x)


class BudgetFormer(EncoderClassifier):
    """The encoder classifier with `BudgetAttention` in every layer.

    A new model stands at the end of its schedules, where inference happens; a training loop moves
    them from 0 to 1 by `set_progress`.
    """

    config: BudgetFormerConfig
    layer: type[BudgetAttention] = BudgetAttention

    def __init__(self, config: BudgetFormerConfig) -> None:
        generator = torch.Generator()
        super().__init__(config, [self.layer(config, generator) for _ in range(config.depth)])
        self.generator = generator
        self.entropy_weight = config.entropy.end
        self.reseed(0)

    def set_progress(self, progress: float) -> None:
        """Moves temperature, noise and entropy weight to `progress` in [0, 1]."""
        for module in self.modules():
            if isinstance(module, BudgetAttention):
                module.tau = self.config.tau.at(progress)
                module.noise = self.config.noise.at(progress)
        self.entropy_weight = self.config.entropy.at(progress)

    def schedule_state(self) -> dict[str, float]:
        """Present temperature, noise and signed entropy weight."""
        first = next(m for m in self.modules() if isinstance(m, BudgetAttention))
        return {"tau": first.tau, "noise": first.noise, "entropy_weight": self.entropy_weight}

    def auxiliary_losses(self, output: ClassifierOutput) -> dict[str, Tensor]:
        """Terms "budget" and "entropy": summed over layers, mean over the batch, weighted."""
        if output.heads is None:
            return {}
        hinge = budget_loss(output.heads.budget, self.config.s_min, self.config.s_max)
        return {
            "budget": self.config.budget_weight * hinge,
            "entropy": self.entropy_weight * relative_entropy(output.heads.scores),
        }

    def reseed(self, seed: int) -> None:
        """Restarts the noise."""
        self.generator.manual_seed(seed)
