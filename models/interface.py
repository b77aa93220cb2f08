"""What every classifier here takes, returns and offers to a training loop (torch side)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from models.config import EncoderConfig

HeadMode = Literal["auto", "soft", "hard", "masked"]


@dataclass
class HeadDecisions:
    """What the controllers of all adaptive layers decided for one batch.

    Attributes:
        budget: (batch, depth) s in (0, 1), the share of heads asked for; differentiable.
        scores: (batch, depth, n_heads) p, a distribution over heads; differentiable.
        k: (batch, depth) int64, the number of heads that inference computes for this input.
        selected: (batch, depth, n_heads) bool, which heads those are.
    """

    budget: Tensor
    scores: Tensor
    k: Tensor
    selected: Tensor


@dataclass
class ClassifierOutput:
    """Logits (batch, n_classes), and the head decisions where the model makes any."""

    logits: Tensor
    heads: HeadDecisions | None = None


class Classifier(nn.Module):
    """Base of all classifiers: the hooks default to "this model has nothing of the kind"."""

    config: EncoderConfig
    head_mode: HeadMode = "auto"

    def forward(
        self,
        input_ids: Tensor,
        key_padding_mask: Tensor,
        segment_ids: Tensor | None = None,
    ) -> ClassifierOutput:
        """Classifies a batch.

        Args:
            input_ids: (batch, length) int64 token ids.
            key_padding_mask: (batch, length) bool, True where the position is padding.
            segment_ids: (batch, length) int64, 0 or 1, for pairs of texts.

        Raises:
            ValueError: the length is greater than `config.max_length`.
        """
        raise NotImplementedError

    def set_progress(self, progress: float) -> None:
        """Moves every schedule (temperature, noise, entropy sign) to `progress` in [0, 1]."""

    def schedule_state(self) -> dict[str, float]:
        """The schedules' present values, by name, for the training record."""
        return {}

    def auxiliary_losses(self, output: ClassifierOutput) -> dict[str, Tensor]:
        """Weighted loss terms beside the task's, by name; the loop adds them all."""
        del output
        return {}

    def reseed(self, seed: int) -> None:
        """Restarts the model's own random generators (noise, random heads)."""

    def load_pretrained(self, state: Mapping[str, Tensor]) -> None:
        """Takes over pretrained weights; what they do not have stays as it was initialised.

        Raises:
            ValueError: the model has no pretrained start, or other shapes than the weights; names
                the first tensor that does not fit.
        """
        del state
        raise ValueError(f"{type(self).__name__} cannot start from pretrained weights")

    @torch.no_grad()
    def n_parameters(self) -> int:
        """Number of parameters, shared ones counted once."""
        return sum(p.numel() for p in self.parameters())
