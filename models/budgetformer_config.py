"""Configuration of BudgetFormer (arXiv 2604.22583)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from models import costs
from models.config import EncoderConfig, Macs
from models.schedules import Linear

Rounding = Literal["floor", "ceil"]
Gate = Literal["budget", "probability", "normalised", "scaled"]


@dataclass(frozen=True, kw_only=True)
class BudgetFormerConfig(EncoderConfig):
    """An encoder in which each input chooses how many and which heads each layer computes.

    The paper states neither schedules, weights nor the controller's width; these defaults are ours.

    Attributes:
        s_min, s_max: the interval inside which a budget costs nothing (the paper's: 0.1, 0.9).
        rounding: how s * n_heads becomes a whole number of heads at inference (sources disagree).
        gate: how s and p become the weights of the heads in training; see `head_budget.soft_gates`.
        keep_gate: whether the heads kept at inference keep that weight; else their weight is 1.
        fixed_k: heads at inference whatever the budget network says; training ignores it.
        tau_start, tau_end: temperature of the softmax over heads, linear in training progress.
        noise_start, noise_end: standard deviation of the noise on the scorer's logits, likewise.
        budget_weight: weight of the quadratic hinge on s.
        entropy_weight: weight of the entropy term, whose sign goes from -1 to +1 in training.
        controller_width: hidden width of the budget network; None means d_model / 4.
        initial_budget: about where s starts. Where no term pulls at s, this is where it stays.
    """

    target: ClassVar[str] = "models.budgetformer:BudgetFormer"
    summary: ClassVar[str] = "each input chooses how many and which heads every layer computes"

    s_min: float = 0.1
    s_max: float = 0.9
    rounding: Rounding = "floor"
    gate: Gate = "budget"
    keep_gate: bool = False
    fixed_k: int | None = None
    tau_start: float = 2.0
    tau_end: float = 0.5
    noise_start: float = 1.0
    noise_end: float = 0.0
    budget_weight: float = 1.0
    entropy_weight: float = 0.01
    controller_width: int | None = None
    initial_budget: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("s_min", "s_max"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie in [0, 1], not {getattr(self, name)}")
        if self.s_min > self.s_max:
            raise ValueError(
                f"s_min = {self.s_min} is greater than s_max = {self.s_max}; swap them, or make "
                "them equal for a single target"
            )
        if self.rounding not in get_args(Rounding):
            raise ValueError(f"rounding must be 'floor' or 'ceil', not {self.rounding!r}")
        if self.gate not in get_args(Gate):
            known = ", ".join(map(repr, get_args(Gate)))
            raise ValueError(f"gate must be one of {known}, not {self.gate!r}")
        if self.fixed_k is not None and not 1 <= self.fixed_k <= self.n_heads:
            raise ValueError(f"fixed_k must lie in 1..n_heads = {self.n_heads}, not {self.fixed_k}")
        for name in ("tau_start", "tau_end"):
            if getattr(self, name) <= 0.0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("noise_start", "noise_end", "budget_weight", "entropy_weight"):
            if getattr(self, name) < 0.0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.controller_width is not None and self.controller_width < 1:
            raise ValueError(f"controller_width must be at least 1, not {self.controller_width}")
        if not 0.0 < self.initial_budget < 1.0:
            raise ValueError(
                f"initial_budget must lie strictly between 0 and 1, not {self.initial_budget}"
            )

    @property
    def width_of_controller(self) -> int:
        """controller_width, resolved."""
        return self.controller_width or max(1, self.d_model // 4)

    @property
    def tau(self) -> Linear:
        """Temperature over training progress."""
        return Linear(self.tau_start, self.tau_end)

    @property
    def noise(self) -> Linear:
        """Standard deviation of the scorer's noise over training progress."""
        return Linear(self.noise_start, self.noise_end)

    @property
    def entropy(self) -> Linear:
        """Signed weight of the entropy: negative (explore) at first, positive (commit) at last."""
        return Linear(-self.entropy_weight, self.entropy_weight)

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input, controllers included; see `EncoderConfig.macs`.

        Without `k` every layer computes `fixed_k` heads, or all if there is no fixed_k.
        """
        if k is None:
            k = [self.fixed_k or self.n_heads] * self.depth
        cost = costs.encoder(self, length, k, controller_width=self.width_of_controller)
        weighted = length * self.width_of_head * sum(k) if self.keep_gate else 0
        return replace(cost, elementwise=cost.elementwise + weighted)
