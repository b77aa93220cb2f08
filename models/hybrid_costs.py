"""Cost of a replaced attention sub-layer by formula, torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.config import Macs
from models.costs import NORM_OPS
from models.mixers import costs

if TYPE_CHECKING:
    from models.bert_hybrid_config import BertHybridConfig
    from models.vit_hybrid_config import ViTHybridConfig


def sub_layer(config: BertHybridConfig | ViTHybridConfig, tokens: int) -> Macs:
    """A mixer in attention's place, its norm and residual sum included.

    Args:
        config: geometry, kind of mixer and options.
        tokens: that take part.
    """
    d = config.d_model
    cost = costs.cost(
        config.mixer, tokens, d, config.n_heads, config.width_of_head, **config.mixer_options
    )
    return Macs(
        attention_core=cost.core,
        attention_projections=cost.projections,
        elementwise=cost.elementwise + tokens * (NORM_OPS + 1) * d,
    )
