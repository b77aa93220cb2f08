"""The controllers of one layer: how many heads an input gets, and which.

Source: BudgetFormer (arXiv 2604.22583). Where the paper is silent the choices are ours: one
unshared pair of controllers per layer, a masked mean over the layer's normed input, hidden width
d_model / 4, GELU, and (unless another is asked for) an initial budget of about one half.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

ROUNDING_SLACK = 1e-6
"""Keeps s * H from missing a whole number by rounding alone."""


class HeadBudget(nn.Module):
    """Budget network and head scorer of one layer.

    Args:
        d_model: width of the layer's input.
        width: hidden width of the budget network.
        n_heads: heads to score.
        initial_budget: s in (0, 1) that the last bias alone would give.
    """

    def __init__(self, d_model: int, width: int, n_heads: int, initial_budget: float = 0.5) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.budget_in = nn.Linear(d_model, width)
        self.budget_out = nn.Linear(width, 1)
        self.scorer = nn.Linear(d_model, n_heads)
        nn.init.constant_(self.budget_out.bias, math.log(initial_budget / (1.0 - initial_budget)))

    def forward(self, pooled: Tensor, noise: Tensor | None, tau: float) -> tuple[Tensor, Tensor]:
        """Budget s (batch,) and scores p (batch, n_heads) of pooled inputs (batch, d_model).

        Args:
            pooled: mean of the layer's input over the tokens.
            noise: added to the scorer's logits; (batch, n_heads) or None.
            tau: temperature of the softmax over heads.
        """
        if noise is None and not torch.is_grad_enabled():
            return self._inferred(pooled, tau)
        s = torch.sigmoid(self.budget_out(nn.functional.gelu(self.budget_in(pooled)))).squeeze(1)
        z = self.scorer(pooled)
        if noise is not None:
            z = z + noise
        return s, torch.softmax(z / tau, 1)

    def _inferred(self, pooled: Tensor, tau: float) -> tuple[Tensor, Tensor]:
        """The same values up to rounding, by fewer and cheaper calls.

        For single inputs of a small model the controllers cost calls, not work; the exact GELU's own
        kernel, e.g., takes four times as long to call as this one's.
        """
        first, last, scorer = self.budget_in, self.budget_out, self.scorer
        hidden = nn.functional.linear(pooled, first.weight, first.bias)
        twice = torch.addcmul(hidden, hidden, torch.erf(hidden * math.sqrt(0.5)))  # 2 GELU(hidden)
        s = torch.sigmoid(torch.addmm(last.bias, twice, last.weight.t(), alpha=0.5)).squeeze(1)
        z = torch.addmm(scorer.bias, pooled, scorer.weight.t(), beta=1.0 / tau, alpha=1.0 / tau)
        return s, torch.softmax(z, 1)


def heads_for(s: Tensor, n_heads: int, rounding: str) -> Tensor:
    """Heads to compute, (batch,) int64 in 1..n_heads, for budgets s (batch,).

    Args:
        s: share of heads asked for.
        n_heads: heads there are.
        rounding: "floor": k = max(1, floor(s * H + 1e-6)); "ceil": k = ceil(s * H - 1e-6).
    """
    asked = s.detach() * n_heads
    if rounding == "ceil":
        asked = torch.ceil(asked - ROUNDING_SLACK)
    # the conversion cuts off the fraction
    return (asked + ROUNDING_SLACK).long().clamp_(1, n_heads)


def best_first(scores: Tensor) -> Tensor:
    """Heads from the highest score to the lowest, equal ones by index; (batch, n_heads) int64."""
    return torch.argsort(scores.detach(), dim=1, descending=True, stable=True)


def first_of(order: Tensor, k: Tensor) -> Tensor:
    """Which heads are among the first `k` (...) of `order` (..., n_heads); bool, as `order`."""
    ranks = torch.arange(order.shape[-1], device=order.device)
    chosen = ranks < k.unsqueeze(-1)
    return torch.empty_like(chosen).scatter_(-1, order, chosen)


def soft_gates(s: Tensor, p: Tensor, gate: str = "budget") -> Tensor:
    """The weight m_i of each head's output, (batch, n_heads).

    The paper's formula is not known to us; these are candidates.

    Args:
        s: (batch,) share of heads asked for.
        p: (batch, n_heads) distribution over heads.
        gate: "budget": m_i = min(1, s * H * p_i), at most s * H in all. A head at the ceiling
            passes no gradient on; its scorer still learns through the others' p. "scaled": the
            same without the ceiling. "probability": m_i = p_i, 1 in all, whatever s is.
            "normalised": m_i = p_i / max p, so that the best head has weight 1.
    """
    if gate == "probability":
        return p
    if gate == "normalised":
        return p / p.amax(1, keepdim=True)
    scaled = s.unsqueeze(1) * (p * p.shape[1])
    return scaled if gate == "scaled" else scaled.clamp(max=1.0)


def budget_loss(s: Tensor, s_min: float, s_max: float) -> Tensor:
    """Quadratic hinge [s_min - s]_+^2 + [s - s_max]_+^2 of s (batch, depth).

    Summed over layers, so that a layer feels the same pull at every depth; mean over the batch.
    """
    below, above = nn.functional.relu(s_min - s), nn.functional.relu(s - s_max)
    return (below.square() + above.square()).sum(1).mean()


def relative_entropy(p: Tensor) -> Tensor:
    """H(p) / log n_heads of p (batch, depth, n_heads), summed over layers, mean over the batch."""
    n_heads = p.shape[-1]
    if n_heads == 1:
        return p.sum() * 0.0
    # the floor keeps the gradient finite where p underflows to zero
    entropy = -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(-1)
    return entropy.sum(1).mean() / math.log(n_heads)
