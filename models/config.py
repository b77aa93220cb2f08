"""Torch-free configurations that the models share, and the cost each states by formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

DATA_FIELDS = frozenset({"vocab_size", "n_classes", "max_length", "n_segments", "channels"})
"""Fields that the data set gives and a suite may not declare."""


@dataclass(frozen=True)
class Macs:
    """Multiply-accumulates of one input at its own length, unpadded.

    One multiply-add is one MAC; FLOPs are twice that. `elementwise` (norms, softmax, activations)
    counts floating-point operations, and stands apart: it is in no total. Where a layer mixes its
    tokens by another module than attention, that module's work stands in attention's place.
    """

    attention_core: float = 0.0
    attention_projections: float = 0.0
    controllers: float = 0.0
    embedding: float = 0.0
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
        parts = (self.controllers, self.embedding, self.feed_forward, self.classifier)
        return self.attention + sum(parts)


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
        keep_ratio: share of the patches that each layer computed; None for a model that halts none.
    """

    params: dict[str, Any]
    k_histogram: list[list[int]] | None
    mean_macs: float
    lengths: list[int] = field(default_factory=list)
    keep_ratio: list[float] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A Transformer classifier of texts or images.

    Attributes:
        depth: number of layers.
        d_model: width of the residual stream.
        n_heads: attention heads per layer.
        head_dim: width of one head; None means d_model / n_heads.
        d_ff: hidden width of the feed-forward part; None means 4 * d_model.
        dropout: probability, at the embedding and at each residual branch.
        n_classes: given by the data set.
        max_length: size of the largest input, given by the data set: tokens of a text, or side in
            pixels of an image.
    """

    target: ClassVar[str] = ""
    """`module:Class` of the torch implementation."""
    summary: ClassVar[str] = ""
    """One line for `frugalbench list models`."""
    role: ClassVar[Literal["model", "control"]] = "model"
    inputs: ClassVar[Literal["text", "image"]] = "text"
    """What it reads."""
    source: ClassVar[Literal["none", "budgets", "weights", "macs", "teacher"]] = "none"
    """What a dependent model takes from its source: nothing, its k histogram, its weights as they are,
    its MACs, or all it knows: it is built on it and distilled from it."""
    base: ClassVar[Literal["none", "weights"]] = "none"
    """What it takes from a second trained model, its base: nothing, or the weights it starts from."""

    depth: int = 2
    d_model: int = 64
    n_heads: int = 8
    head_dim: int | None = None
    d_ff: int | None = None
    dropout: float = 0.1
    n_classes: int = 2
    max_length: int = 64

    def __post_init__(self) -> None:
        for name in ("depth", "d_model", "n_heads", "n_classes", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("head_dim", "d_ff"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
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
        """Cost of one input by formula.

        Args:
            length: tokens of a text, padding excluded; side in pixels of an image.
            k: what each layer computed (`depth` entries): heads, or tokens where the model halts
                tokens; None means all.
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


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelConfig):
    """A Transformer encoder that classifies texts, or pairs of texts.

    Attributes:
        vocab_size, n_segments: given by the data set.
    """

    vocab_size: int = 1000
    n_segments: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("vocab_size", "n_segments"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class VisionConfig(ModelConfig):
    """A Vision Transformer that classifies square images (Dosovitskiy et al. 2021).

    Attributes:
        patch_size: side in pixels of the square patches that become tokens.
        channels: 1 or 3, given by the data set.
    """

    inputs: ClassVar[Literal["text", "image"]] = "image"

    patch_size: int = 4
    channels: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("patch_size", "channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.image_size % self.patch_size:
            raise ValueError(
                f"patch_size = {self.patch_size} does not divide the images' side of "
                f"{self.image_size} pixels"
            )

    @property
    def image_size(self) -> int:
        """Side in pixels of the images."""
        return self.max_length

    @property
    def n_tokens(self) -> int:
        """Patches of one image and the class token."""
        return (self.image_size // self.patch_size) ** 2 + 1
