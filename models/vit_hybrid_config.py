"""Configuration of a Vision Transformer in which other modules than attention mix some layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

from models import vit_costs
from models.avit_config import AViTConfig
from models.config import Macs, TrainedSummary
from models.distillation import Distillation, require_fit, taken_from
from models.hybrid_costs import sub_layer
from models.vit_config import ViTConfig

HALTING = frozenset(f.name for f in fields(AViTConfig)) - {f.name for f in fields(ViTConfig)}
"""What an A-ViT has beside a Vision Transformer."""


@dataclass(frozen=True, kw_only=True)
class ViTHybridConfig(Distillation, AViTConfig):
    """A trained Vision Transformer, or A-ViT, whose attention is replaced in some layers.

    It is distilled from that teacher, and what is not declared is the teacher's: sizes, halting,
    weights. Without training it needs no teacher, and halts nothing.

    Attributes:
        halts: whether the teacher halts tokens, so that the student does too; only `resolve` sets it.
    """

    target: ClassVar[str] = "models.vit_hybrid:vit_hybrid"
    summary: ClassVar[str] = "a trained ViT or A-ViT with the attention of some layers replaced"
    source: ClassVar[Literal["none", "budgets", "weights", "macs", "teacher"]] = "teacher"
    base: ClassVar[Literal["none", "weights"]] = "none"

    keep_ratio: float = 1.0
    halts: bool = field(default=False, metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distillation()

    @classmethod
    def declarable(cls) -> dict[str, Any]:
        """See `ModelConfig.declarable`; halting is the teacher's."""
        return {k: v for k, v in super().declarable().items() if k not in HALTING}

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one image; see `ModelConfig.macs`."""
        return AViTConfig.macs(self, length, k) if self.halts else ViTConfig.macs(self, length, k)

    def layer_macs(self, layer: int, tokens: int) -> Macs:
        """See `ViTConfig.layer_macs`; a mixer's work stands in attention's place."""
        if layer not in self.replace:
            return super().layer_macs(layer, tokens)
        parts = [vit_costs.feed_forward(self, tokens, scaled=self.layer_scale)]
        if self.mixer != "identity":  # where nothing is mixed, nothing is normed and added either
            scaled = Macs(elementwise=float(self.layer_scale * tokens * self.d_model))
            parts += [sub_layer(self, tokens), scaled]
        return vit_costs.summed(parts)

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the teacher's configuration.

        Raises:
            ValueError: a layer to replace that it has not, another value declared than it has, or sizes
                that the mixer cannot have.
        """
        halts = "gate_scale" in source.params
        made = replace(self, **taken_from(self, source.params), halts=halts)
        require_fit(made)
        return made
