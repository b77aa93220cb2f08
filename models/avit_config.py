"""Configuration of A-ViT, a Vision Transformer that halts tokens (Yin et al. 2022, arXiv 2112.07658)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

from models import vit_costs
from models.config import Macs
from models.vit_config import ViTConfig

Mode = Literal["s2s", "avit2022"]
HALTING_OPS = 12
"""Operations of one token's halting: score (4 with the sigmoid), three running sums, comparisons."""


@dataclass(frozen=True, kw_only=True)
class AViTConfig(ViTConfig):
    """A Vision Transformer in which each token stops being computed once its scores sum to 1.

    It starts from a trained Vision Transformer's weights; the centre of its gate is chosen on
    validation images so that `keep_ratio` of the patches are kept, and then it is trained on.

    Attributes:
        keep_ratio: share of patch tokens to be computed, mean over layers, when fine-tuning starts;
            the first layer always computes all.
        mode: "avit2022", as NVIDIA's code has it: the class token halts like any other, the prior
            leaves the first image out and is no normalised distribution; or "s2s", as the S2S
            authors have it (arXiv 2605.18865): the class token is computed in every layer, the
            prior looks at patches alone and is normalised after clamping. Their code adds the
            class token's remainder anew in each layer after its threshold; here it is added once,
            in the last layer, and its gate has a centre of its own, so that all layers decide on
            the class however early patches halt.
        gate_scale: gamma of h = sigmoid(gamma * first channel - centre).
        ponder_weight: weight of the layers used, mean over tokens.
        prior_weight: weight of the divergence of halting scores from a Gaussian over layers.
        prior_layer: layer, counted from 0, at the Gaussian's centre; None: two thirds of the depth,
            the paper's 8 of 12.
        halting_weight: weight of both terms together; None: the mode's own, 1 or (s2s) 0.1.
        finetune_epochs: epochs of training after the start from the trained weights.
    """

    target: ClassVar[str] = "models.avit:AViT"
    summary: ClassVar[str] = "A-ViT: a Vision Transformer that halts tokens, layer by layer"
    base: ClassVar[Literal["none", "weights"]] = "weights"

    keep_ratio: float = 0.7
    mode: Mode = "s2s"
    gate_scale: float = 10.0
    ponder_weight: float = 5e-4
    prior_weight: float = 1e-3
    prior_layer: int | None = None
    halting_weight: float | None = None
    finetune_epochs: int = 5
    pretrained: str | None = field(default=None, metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be 's2s' or 'avit2022', not {self.mode!r}")
        if not 0.0 < self.keep_ratio <= 1.0:
            raise ValueError(f"keep_ratio must lie in (0, 1], not {self.keep_ratio}")
        if self.keep_ratio * self.depth < 1.0:
            raise ValueError(
                f"keep_ratio = {self.keep_ratio} cannot be reached with depth = {self.depth}: the "
                f"first layer computes every token, which alone is {1 / self.depth:.3g}"
            )
        if self.gate_scale <= 0.0:
            raise ValueError(f"gate_scale must be positive, not {self.gate_scale}")
        for name in ("ponder_weight", "prior_weight", "halting_weight"):
            if (getattr(self, name) or 0.0) < 0.0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.prior_layer is not None and not 1 <= self.prior_layer < self.depth:
            raise ValueError(
                f"prior_layer must lie in 1..{self.depth - 1} (depth = {self.depth}), not "
                f"{self.prior_layer}"
            )
        if self.finetune_epochs < 0:
            raise ValueError(f"finetune_epochs must not be negative, not {self.finetune_epochs}")

    @property
    def class_token_stays(self) -> bool:
        """Whether the class token is computed in every layer."""
        return self.mode == "s2s"

    @property
    def weight_of_halting(self) -> float:
        """halting_weight, resolved."""
        if self.halting_weight is not None:
            return self.halting_weight
        return 0.1 if self.mode == "s2s" else 1.0

    @property
    def prior(self) -> tuple[float, ...]:
        """The target of the halting scores over layers, as NVIDIA's code scales it.

        A Gaussian's density of standard deviation 1, scaled so that the entries before its centre
        sum to 0.98; so it does not sum to 1.
        """
        centre = self.prior_layer
        if centre is None:
            centre = max(1, min(self.depth - 1, round(2 * self.depth / 3)))
        density = [math.exp(-0.5 * (layer - centre) ** 2) for layer in range(self.depth)]
        scale = 0.98 / sum(density[:centre])
        return tuple(scale * value for value in density)

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one image; see `ModelConfig.macs`. Without `k`, of one in which no token halts."""
        cost = super().macs(length, k)
        computed = sum(k) if k is not None else self.depth * vit_costs.tokens_of(self, length)
        gates = HALTING_OPS * computed + 2 * self.depth * self.d_model
        return replace(cost, elementwise=cost.elementwise + gates)

    def training_epochs(self, epochs: int) -> int:
        """Epochs after the start from the base's weights."""
        del epochs
        return self.finetune_epochs
