"""Vision Transformers, halting tokens or not, in which other modules than attention mix some layers.

Source: S2S (arXiv 2605.18865): only the attention sub-layer is swapped; norms, feed-forward parts,
residuals and the output projection W^O stay the teacher's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from models.avit import AViT
from models.hybrid import Hybrid
from models.mixers.build import replace_attention
from models.vit import Block, ViT

if TYPE_CHECKING:
    from torch import nn

    from models.vit_hybrid_config import ViTHybridConfig


class _Replaced(Hybrid):
    """Swaps the mixers of a Vision Transformer's blocks."""

    blocks: nn.ModuleList

    def __init__(self, config: ViTHybridConfig) -> None:
        super().__init__(config)
        replace_attention(
            [(block, "attn") for block in self.blocks],
            config.replace,
            config.mixer,
            config.d_model,
            config.n_heads,
            config.width_of_head,
            **config.mixer_options,
        )
        self.requires_grad_()  # of a teacher whose head alone was trained, too

    def replaced(self) -> dict[str, nn.Module]:
        """See `Hybrid.replaced`."""
        return {f"blocks.{i}.attn": cast(Block, self.blocks[i]).attn for i in self.config.replace}


class ViTHybrid(_Replaced, ViT):
    """A Vision Transformer with some mixers replaced."""

    config: ViTHybridConfig


class AViTHybrid(_Replaced, AViT):
    """An A-ViT with some mixers replaced; these see the kept tokens alone, in their order."""

    config: ViTHybridConfig


def vit_hybrid(config: ViTHybridConfig) -> ViTHybrid | AViTHybrid:
    """The hybrid of the teacher's kind, with fresh weights."""
    return AViTHybrid(config) if config.halts else ViTHybrid(config)
