"""Configuration of the dense control that is given the same work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from models import costs
from models.config import EncoderConfig, Macs, TrainedSummary


@dataclass(frozen=True, kw_only=True)
class FewerHeadsConfig(EncoderConfig):
    """A dense encoder with a number of heads of its own in each layer.

    Attributes:
        heads_per_layer: heads of each layer; only `resolve` sets it. Empty: n_heads everywhere.
    """

    target: ClassVar[str] = "models.fewer_heads:FewerHeads"
    summary: ClassVar[str] = "dense, with as few heads per layer as match a trained model's MACs"
    role: ClassVar[Literal["model", "control"]] = "control"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "macs"

    heads_per_layer: tuple[int, ...] = field(default=(), metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        heads = self.heads_per_layer
        if heads and (
            len(heads) != self.depth or not 1 <= min(heads) <= max(heads) <= self.n_heads
        ):
            raise ValueError(
                f"heads_per_layer must have {self.depth} entries from 1 to {self.n_heads}, not "
                f"{list(heads)}"
            )

    @property
    def heads(self) -> tuple[int, ...]:
        """heads_per_layer, or n_heads everywhere before it is resolved."""
        return self.heads_per_layer or (self.n_heads,) * self.depth

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input; see `EncoderConfig.macs`."""
        return costs.encoder(self, length, self.heads if k is None else k)

    def resolve(self, source: TrainedSummary) -> Self:
        """Chooses the head counts whose mean MACs come nearest to the source's from below.

        A head costs the same in every layer, so the source's MACs fix how many heads there are in
        all. They go, one after the other, to the layer that lacks most of the source's mean k.
        Every layer has at least one head, even if that is more work than the source does.

        Raises:
            ValueError: the source has no lengths to cost candidates on.
        """
        if not source.lengths:
            raise ValueError("fewer-heads needs the lengths of its source's validation inputs")
        one_each = self._mean_macs((1,) * self.depth, source)
        per_head = (self._mean_macs((self.n_heads,) * self.depth, source) - one_each) / (
            self.depth * max(1, self.n_heads - 1)
        )
        spare = source.mean_macs - one_each
        # the tolerance is for a mean that was summed up in another order
        extra = math.floor(spare / per_head + 1e-9) if per_head else 0
        wanted = self._wanted(source)
        heads = [1] * self.depth
        for _ in range(min(max(0, extra), self.depth * (self.n_heads - 1))):
            open_layers = [i for i in range(self.depth) if heads[i] < self.n_heads]
            heads[max(open_layers, key=lambda i: wanted[i] - heads[i])] += 1
        return replace(self, heads_per_layer=tuple(heads))

    def mac_residual(self, source: TrainedSummary) -> float:
        """(source's mean MACs - own) / source's, over the source's lengths.

        Negative where even one head in each layer is more work than the source does.
        """
        return (source.mean_macs - self._mean_macs(self.heads, source)) / source.mean_macs

    def _mean_macs(self, heads: Sequence[int], source: TrainedSummary) -> float:
        return math.fsum(self.macs(n, heads).total for n in source.lengths) / len(source.lengths)

    def _wanted(self, source: TrainedSummary) -> list[float]:
        if source.k_histogram is None or len(source.k_histogram) != self.depth:
            return [0.0] * self.depth
        return [
            sum(k * count for k, count in enumerate(row)) / max(1, sum(row))
            for row in source.k_histogram
        ]
