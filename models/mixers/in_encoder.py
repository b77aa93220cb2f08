"""Lets a token mixer take the place of attention in the encoders of texts, BERT among them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.encoder import AttentionLayer, LayerHeads, Shared
from models.mixers.interface import TokenMixer


class MixerLayer(AttentionLayer):
    """A token mixer as an encoder's attention sub-layer.

    W^O moves from the mixer to `output`, where the encoders' own attention has it too, so that a
    trained model's tensor of that name still fits.

    Attributes:
        capture: keep the concatenated head outputs of each pass in `captured`.
        captured: (batch, length, n_heads * head_dim), before W^O.
    """

    capture: bool = False
    captured: Tensor | None = None
    output: nn.Module | None

    def __init__(self, mixer: TokenMixer) -> None:
        super().__init__()
        self.output = mixer.proj
        mixer.proj = None
        self.mixer = mixer

    def forward(self, x: Tensor, shared: Shared) -> tuple[Tensor, LayerHeads | None]:
        """See `AttentionLayer.forward`."""
        self.mixer.plain = shared.plain_attention
        padding = None if shared.bias is None else shared.bias[:, 0, 0] < 0
        if self.output is None and not self.capture:
            return torch.zeros_like(x), None
        mixed = self.mixer.heads(x, padding)
        if self.capture:
            self.captured = mixed
        return torch.zeros_like(x) if self.output is None else self.output(mixed), None
