"""Cost of a Vision Transformer's parts by formula; the constants are those of `models.costs`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from models import costs
from models.config import Macs, VisionConfig


def tokens_of(config: VisionConfig, side: int) -> int:
    """Patches of an image of `side` pixels, and the class token.

    Raises:
        ValueError: the side is no multiple of the patches'.
    """
    if side < config.patch_size or side % config.patch_size:
        raise ValueError(
            f"an image of {side} pixels a side has no whole patches of patch_size = "
            f"{config.patch_size}"
        )
    return (side // config.patch_size) ** 2 + 1


def frame(config: VisionConfig, tokens: int) -> Macs:
    """Patch projection, positions, and the final norm and linear head on the class token alone."""
    d, patches = config.d_model, tokens - 1
    return Macs(
        embedding=float(patches * d * config.channels * config.patch_size**2),
        classifier=float(d * config.n_classes),
        elementwise=float(patches * d + tokens * d + costs.NORM_OPS * d + config.n_classes),
    )


def attention(config: VisionConfig, tokens: int, *, scaled: bool = False) -> Macs:
    """One attention sub-layer, its norm and residual sum included.

    Args:
        config: geometry.
        tokens: that take part.
        scaled: whether the sub-layer's output is scaled channel by channel.
    """
    d, hd, heads = config.d_model, config.width_of_head, config.n_heads
    return Macs(
        attention_core=costs.core(tokens, hd, heads),
        attention_projections=costs.projections(tokens, d, hd, heads),
        elementwise=costs.attention_elementwise(tokens, d, hd, heads) + scaled * tokens * d,
    )


def feed_forward(config: VisionConfig, tokens: int, *, scaled: bool = False) -> Macs:
    """One feed-forward sub-layer; see `attention`."""
    d, d_ff = config.d_model, config.width_of_ffn
    return Macs(
        feed_forward=costs.feed_forward(tokens, d, d_ff),
        elementwise=costs.feed_forward_elementwise(tokens, d, d_ff) + scaled * tokens * d,
    )


def summed(parts: Iterable[Macs]) -> Macs:
    """All parts together, field by field."""
    parts = list(parts)
    return Macs(**{f.name: sum(getattr(part, f.name) for part in parts) for f in fields(Macs)})
