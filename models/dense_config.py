"""Configuration of the dense encoder, the baseline of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from models import costs
from models.config import EncoderConfig, Macs


@dataclass(frozen=True, kw_only=True)
class DenseConfig(EncoderConfig):
    """A dense encoder: every input computes every head, with fused attention."""

    target: ClassVar[str] = "models.dense:Dense"
    summary: ClassVar[str] = "pre-norm Transformer encoder with fused attention; the baseline"

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input; see `EncoderConfig.macs`."""
        return costs.encoder(self, length, [self.n_heads] * self.depth if k is None else k)
