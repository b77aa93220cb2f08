"""Torch-free configuration shared by the text encoders, and the cost each states by formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

DATA_FIELDS = frozenset({"vocab_size", "n_classes", "max_length", "n_segments"})
"""Fields that the data set gives and a suite may not declare."""


@dataclass(frozen=True)
class Macs:
    """Multiply-accumulates of one input at its own length, unpadded.

    One multiply-add is one MAC; FLOPs are twice that. `elementwise` (norms, softmax, activations)
    counts floating-point operations, and stands apart: it is in no total.
    """

    attention_core: float = 0.0
    attention_projections: float = 0.0
    controllers: float = 0.0
    feed_forward: float = 0.0
    classifier: float = 0.0
    elementwise: float = 0.0

    @property
    def attention(self) -> float:
        """Core and projections, without controllers."""
        return self.attention_core + self.attention_projections

    @property
    def total(self) -> float:
        """The whole model's matrix-multiply work, controllers included."""
        return self.attention + self.controllers + self.feed_forward + self.classifier


@dataclass(frozen=True)
class TrainedSummary:
    """What a trained model's artifact says of it to a model that depends on it.

    Everything here was read on the *validation* split; choices never see the test set.

    Attributes:
        params: the trained model's full configuration (`dataclasses.asdict`).
        k_histogram: per layer, entry k = number of validation inputs that used k heads; None for a
            model without head decisions.
        mean_macs: mean whole-model MACs over the validation inputs, each at its own length.
        lengths: the validation inputs' lengths in tokens, for costing candidates.
    """

    params: dict[str, Any]
    k_histogram: list[list[int]] | None
    mean_macs: float
    lengths: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """A pre-norm Transformer encoder classifier.

    Attributes:
        depth: number of layers.
        d_model: width of the residual stream.
        n_heads: attention heads per layer.
        head_dim: width of one head; None means d_model / n_heads.
        d_ff: hidden width of the feed-forward part; None means 4 * d_model.
        dropout: probability, at the embedding and at each residual branch.
        vocab_size, n_classes, max_length, n_segments: given by the data set.
    """

    target: ClassVar[str] = ""
    """`module:Class` of the torch implementation."""
    summary: ClassVar[str] = ""
    """One line for `frugalbench list models`."""
    role: ClassVar[Literal["model", "control"]] = "model"
    source: ClassVar[Literal["none", "budgets", "weights", "macs"]] = "none"
    """What a dependent model takes from its source: nothing, its k histogram, its weights or its MACs."""
    base: ClassVar[Literal["none", "weights"]] = "none"
    """What it takes from a second trained model, its base: nothing, or the weights it starts from."""

    depth: int = 2
    d_model: int = 64
    n_heads: int = 8
    head_dim: int | None = None
    d_ff: int | None = None
    dropout: float = 0.1
    vocab_size: int = 1000
    n_classes: int = 2
    max_length: int = 64
    n_segments: int = 1

    def __post_init__(self) -> None:
        for name in ("depth", "d_model", "n_heads", "vocab_size", "n_classes", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.head_dim is None and self.d_model % self.n_heads:
            divisors = [h for h in range(1, self.d_model + 1) if self.d_model % h == 0]
            near = sorted(divisors, key=lambda h: abs(h - self.n_heads))[:3]
            raise ValueError(
                f"n_heads = {self.n_heads} does not divide d_model = {self.d_model}; nearest that do: "
                f"{', '.join(map(str, sorted(near)))} (or give head_dim)"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout must lie in [0, 1), not {self.dropout}")

    @property
    def width_of_head(self) -> int:
        """head_dim, resolved."""
        return self.head_dim if self.head_dim is not None else self.d_model // self.n_heads

    @property
    def width_of_ffn(self) -> int:
        """d_ff, resolved."""
        return self.d_ff if self.d_ff is not None else 4 * self.d_model

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input of `length` tokens by formula.

        Args:
            length: tokens, padding excluded.
            k: heads computed per layer (`depth` entries); None means all.
        """
        raise NotImplementedError

    def resolve(self, source: TrainedSummary) -> Self:
        """A dependent model's final configuration, once its source is trained."""
        del source
        return self

    def training_epochs(self, epochs: int) -> int:
        """Epochs that this model is trained for under a recipe of `epochs`; 0: not at all."""
        return epochs

    @classmethod
    def declarable(cls) -> dict[str, Any]:
        """Names and defaults of the fields that a suite may declare."""
        return {
            f.name: f.default
            for f in fields(cls)
            if f.init and f.name not in DATA_FIELDS and f.metadata.get("declarable", True)
        }
