"""The training recipe: torch-free values, tuned once on the dense model and used for all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from benchmarks.errors import InvalidFileError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    """

    epochs: int = 3
    batch_size: int = 64
    peak_lr: float = 3e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    beta2: float = 0.98

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "peak_lr", "clip"):
            if getattr(self, name) <= 0:
                raise ValueError(f"recipe.{name} must be positive, not {getattr(self, name)}")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"recipe.warmup must lie in [0, 1), not {self.warmup}")

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
