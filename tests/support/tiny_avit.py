"""A tiny A-ViT whose tokens halt in different layers, its images, and its masked computation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.avit import AViT
from models.avit_config import AViTConfig
from models.interface import ClassifierOutput, TokenDecisions
from models.vit import ViT

SIZES: dict[str, Any] = {
    "depth": 4,
    "d_model": 12,
    "n_heads": 2,
    "d_ff": 20,
    "patch_size": 4,
    "max_length": 12,
    "n_classes": 3,
    "channels": 1,
    "dropout": 0.0,
}


MODES = ("s2s", "avit2022")


TOKENS = 10


BATCH = 4


def make(mode: str = "s2s", centre: float = 1.0, **changes: Any) -> AViT:
    """With random weights under which tokens halt in different layers."""
    torch.manual_seed(0)
    model = AViT(AViTConfig(**{"gate_scale": 3.0} | SIZES | changes, mode=mode)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.25)
    model.gate_center.fill_(centre)
    return model


def images(batch: int = BATCH, seed: int = 1) -> Tensor:
    return torch.randn(batch, 1, 12, 12, generator=torch.Generator().manual_seed(seed))


def blocks_of(model: ViT) -> Any:
    return model.blocks


def tokens_of(output: ClassifierOutput) -> TokenDecisions:
    assert output.tokens is not None
    return output.tokens


def masked(model: AViT, pixel_values: Tensor, keep: Tensor | None = None) -> ClassifierOutput:
    """The output of the masked computation in eval mode."""
    model.packed = False
    try:
        found: ClassifierOutput = model(pixel_values, keep=keep)
        return found
    finally:
        model.packed = True
