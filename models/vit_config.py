"""Configuration of the Vision Transformer (arXiv 2010.11929; DeiT: arXiv 2012.12877)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from models import vit_costs
from models.config import Macs, VisionConfig


@dataclass(frozen=True, kw_only=True)
class ViTConfig(VisionConfig):
    """A Vision Transformer; the sizes train on a CPU.

    DeiT-Tiny, -Small and -Base are depth 12, head_dim 64, patch_size 16 at 224 pixels with d_model
    192, 384 and 768; the packaged ViT-S/14 is Small with patch_size 14 and layer_scale.

    Attributes:
        layer_scale: whether each sub-layer's output is scaled channel by channel by learned factors
            (Touvron et al. 2021, arXiv 2103.17239), as in DINOv2.
        pretrained: name of the weights to start from; None: random weights.
        head_only: train the linear head alone, all else stays as it starts (a linear probe).
    """

    target: ClassVar[str] = "models.vit:ViT"
    summary: ClassVar[str] = "Vision Transformer (ViT, DeiT) with fused attention; the teacher"

    depth: int = 8
    d_model: int = 96
    n_heads: int = 3
    layer_scale: bool = False
    pretrained: str | None = None
    head_only: bool = False

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one image; see `ModelConfig.macs`.

        Raises:
            ValueError: no whole patches, or `k` does not have one entry per layer.
        """
        tokens = vit_costs.tokens_of(self, length)
        computed = [tokens] * self.depth if k is None else k
        if len(computed) != self.depth:
            raise ValueError(f"k must have one entry per layer ({self.depth}), not {len(computed)}")
        return vit_costs.summed(
            [
                vit_costs.frame(self, tokens),
                *(self.layer_macs(i, n) for i, n in enumerate(computed)),
            ]
        )

    def layer_macs(self, layer: int, tokens: int) -> Macs:
        """Cost of one layer, counted from 0, that computes so many tokens."""
        del layer
        return vit_costs.summed(
            part(self, tokens, scaled=self.layer_scale)
            for part in (vit_costs.attention, vit_costs.feed_forward)
        )
