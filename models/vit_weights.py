"""From pretrained state dicts to the layout of the Vision Transformer here, which is timm's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from models.config import VisionConfig

DINOV2 = (
    (r"^(dinov2\.)?embeddings\.cls_token$", "cls_token"),
    (r"^(dinov2\.)?embeddings\.position_embeddings$", "pos_embed"),
    (r"^(dinov2\.)?embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^(dinov2\.)?encoder\.layers?\.(\d+)\.", r"blocks.\2."),
    (r"^(dinov2\.)?layernorm\.", "norm."),
    (r"\.attention\.attention\.(query|key|value)\.", r".attn.\1."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
)
"""Transformers' names of DINOv2's tensors, and timm's."""

UNUSED = re.compile(r"^((dinov2\.)?embeddings\.mask_token$|(head|head_dist|classifier)\.)")
"""What a checkpoint has for other tasks than ours."""


def from_pretrained(state: Mapping[str, Tensor], config: VisionConfig) -> dict[str, Tensor]:
    """The tensors by timm's names, fitted to the images' size and channels.

    Args:
        state: by transformers' names of DINOv2, or by timm's.
        config: of the model that takes them.
    """
    named: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if UNUSED.match(name):
            continue
        new = name
        for pattern, with_what in DINOV2:
            new = re.sub(pattern, with_what, new)
        named[new] = tensor
    for name in [name for name in named if ".attn.query." in name]:
        parts = [name.replace("query", part) for part in ("query", "key", "value")]
        if all(part in named for part in parts):
            joint = torch.cat([named.pop(part) for part in parts])
            named[name.replace("query", "qkv")] = joint
    if "pos_embed" in named:
        named["pos_embed"] = interpolated(
            named["pos_embed"], config.image_size // config.patch_size
        )
    filters = named.get("patch_embed.proj.weight")
    if filters is not None and config.channels == 1:
        named["patch_embed.proj.weight"] = filters.sum(1, keepdim=True)
    return named


def interpolated(positions: Tensor, side: int) -> Tensor:
    """Positions of a grid of `side` x `side` patches, from those of another square grid.

    Args:
        positions: (1, 1 + patches, d_model), the class token's first; of no square grid: left alone.
        side: wanted.
    """
    first, patches = positions[:, :1], positions[:, 1:]
    old = round(patches.shape[1] ** 0.5)
    if old == side or old * old != patches.shape[1]:
        return positions
    grid = patches.reshape(1, old, old, -1).permute(0, 3, 1, 2)
    scaled = nn.functional.interpolate(grid, (side, side), mode="bicubic", align_corners=False)
    return torch.cat((first, scaled.flatten(2).transpose(1, 2)), 1)
