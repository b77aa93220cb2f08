"""What every classifier here takes, returns and offers to a training loop (torch side)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from models.config import ModelConfig

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
class TokenDecisions:
    """Which tokens each layer of a model that halts tokens computed, for one batch.

    Attributes:
        kept: (batch, depth) int64, the number of tokens computed, class token included.
        keep: (batch, depth, tokens) bool, which these are.
        halting: (batch, depth, tokens) h in [0, 1], the halting scores; differentiable.
        ponder: (batch, tokens) rho, layers used and the remainder; differentiable.
    """

    kept: Tensor
    keep: Tensor
    halting: Tensor
    ponder: Tensor


@dataclass
class ClassifierOutput:
    """Logits (batch, n_classes), and the decisions on heads or tokens where the model makes any."""

    logits: Tensor
    heads: HeadDecisions | None = None
    tokens: TokenDecisions | None = None

    @property
    def work(self) -> Tensor | None:
        """(batch, depth) int64: heads or tokens that each layer computed; None: all, always."""
        if self.heads is not None:
            return self.heads.k
        return None if self.tokens is None else self.tokens.kept


class Classifier(nn.Module):
    """Base of all classifiers: the hooks default to "this model has nothing of the kind"."""

    config: ModelConfig
    head_mode: HeadMode = "auto"
    undecayed: tuple[str, ...] = ()
    """Names of parameters that are tables, not matrices: weight decay spares them."""

    def forward(self, *inputs: Any, **options: Any) -> ClassifierOutput:
        """Classifies a batch.

        Args:
            inputs: of texts: input_ids (batch, length) int64, key_padding_mask (batch, length) bool,
                True where the position is padding, and segment_ids (batch, length) int64, 0 or 1,
                for pairs of texts, else None; of images: pixel_values
                (batch, channels, side, side), normalised.
            options: a model's own.

        Raises:
            ValueError: an input is longer or of another size than `config.max_length`.
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
