"""Configuration of the control without attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from models import costs
from models.config import EncoderConfig, Macs


@dataclass(frozen=True, kw_only=True)
class NoAttentionConfig(EncoderConfig):
    """The dense encoder with every attention sub-layer deleted; nobody can give it heads."""

    target: ClassVar[str] = "models.no_attention:NoAttention"
    summary: ClassVar[str] = "attention deleted: does the data set need any?"
    role: ClassVar[Literal["model", "control"]] = "control"

    n_heads: int = field(default=1, metadata={"declarable": False})
    head_dim: int | None = field(default=None, metadata={"declarable": False})

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input; `k` makes no difference. See `EncoderConfig.macs`."""
        del k
        return costs.encoder(self, length, [0] * self.depth, attention=False)
