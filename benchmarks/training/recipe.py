"""The training recipe: torch-free values, tuned once on the dense model and used for all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from benchmarks.errors import InvalidFileError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

Augment = Literal["none", "crop-flip", "crop"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """AdamW with linear warm-up, cosine decay to zero and gradient clipping.

    Attributes:
        epochs: passes over the training rows.
        batch_size: inputs per step.
        peak_lr: learning rate after warm-up.
        warmup: share of all steps spent warming up.
        weight_decay: AdamW's, on matrices only (not on norms, biases and embeddings).
        clip: largest global gradient norm.
        beta2: AdamW's second-moment decay.
        label_smoothing: share of each label's weight that is spread over all classes.
        augment: random changes of training images: shifted crops, with or without mirroring.
        mixup: alpha of the Beta distribution that pairs of training images are blended by; 0: none.
        cutmix: likewise for rectangles pasted from one into the other.
    """

    epochs: int = 3
    batch_size: int = 64
    peak_lr: float = 3e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    beta2: float = 0.98
    label_smoothing: float = 0.0
    augment: Augment = "none"
    mixup: float = 0.0
    cutmix: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "peak_lr", "clip"):
            if getattr(self, name) <= 0:
                raise ValueError(f"recipe.{name} must be positive, not {getattr(self, name)}")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"recipe.warmup must lie in [0, 1), not {self.warmup}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"recipe.label_smoothing must lie in [0, 1), not {self.label_smoothing}"
            )
        if self.augment not in get_args(Augment):
            raise ValueError(
                f"recipe.augment must be one of {', '.join(get_args(Augment))}, not {self.augment!r}"
            )
        for name in ("mixup", "cutmix"):
            if getattr(self, name) < 0:
                raise ValueError(f"recipe.{name} must not be negative, not {getattr(self, name)}")

    @property
    def changes_images(self) -> bool:
        """Whether training inputs are changed at random, which only images can be."""
        return self.augment != "none" or self.mixup > 0 or self.cutmix > 0

    def declared(self) -> dict[str, Any]:
        """The values that differ from the defaults."""
        default = Recipe()
        return {k: v for k, v in asdict(self).items() if v != getattr(default, k)}

    @classmethod
    def from_declared(cls, values: Mapping[str, Any]) -> Recipe:
        """A recipe from declared values.

        Raises:
            InvalidFileError: a name that no recipe has, or a value out of range.
        """
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise InvalidFileError(suggest(name, known, kind="recipe value"))
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise InvalidFileError(str(error)) from error
