"""The arithmetic of token halting (Yin et al. 2022, arXiv 2112.07658, section 3).

A token's halting scores h are summed over layers until they reach 1 - EPS, at its halting layer.
There it has used up its probability: h in each layer before, and the remainder in that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

EPS = 0.01
LOWEST, HIGHEST = 0.01, 0.99
"""What a layer's share of the halting scores is clamped to."""


class HaltingState:
    """What one forward pass knows of each of its tokens.

    Attributes:
        running: (batch, tokens) bool, which tokens have not reached their halting layer: those that the
            next layer computes, unless masks are forced.
        ponder: (batch, tokens) rho, layers computed so far and, once it is used, the remainder.
    """

    def __init__(self, batch: int, tokens: int, like: Tensor, *, class_token_stays: bool) -> None:
        """At the start.

        Args:
            batch: images.
            tokens: of each.
            like: gives type and device.
            class_token_stays: whether token 0 is computed to the end: its remainder then waits for
                the last layer.
        """
        self.running = torch.ones(batch, tokens, dtype=torch.bool, device=like.device)
        self.ponder = like.new_zeros(batch, tokens)
        self._sum = like.new_zeros(batch, tokens)
        self._remainder = like.new_ones(batch, tokens)
        self._class_token_stays = class_token_stays

    def step(
        self, h: Tensor, computed: Tensor, *, ends: Tensor | None = None, last: bool = False
    ) -> Tensor:
        """Takes in one layer's scores.

        Args:
            h: (batch, tokens); of tokens that were not computed: whatever.
            computed: (batch, tokens) bool, which tokens the layer computed.
            ends: (batch, tokens) bool, tokens for which this is made the last layer whatever they
                score.
            last: whether it is the last layer, where every score counts as 1.

        Returns:
            (batch, tokens) p, the share of this layer in the token's output.
        """
        self._sum = self._sum + (torch.ones_like(h) if last else h)
        reached = self._sum > 1 - EPS
        below = self._sum < 1 - EPS
        if ends is not None:
            reached, below = reached | ends, below & ~ends
        halting = self.running & computed
        reached, below = reached & halting, below & halting
        self.running = below
        if self._class_token_stays and not last:
            reached = _with_first(reached, value=False)
            self.running = _with_first(below, value=True)
        used = self._remainder * reached
        share = used + h * below
        self.ponder = self.ponder + computed + used
        self._remainder = self._remainder - h * below
        return share


def _with_first(mask: Tensor, *, value: bool) -> Tensor:
    """The mask with this value for token 0 of every image."""
    changed = mask.clone()
    changed[:, 0] = value
    return changed


def require_masks(keep: Tensor, shape: tuple[int, int, int], *, class_token_stays: bool) -> None:
    """Checks masks that are forced on a model.

    Args:
        keep: what was given.
        shape: (batch, depth, tokens) that it must have.
        class_token_stays: whether the class token must be kept.

    Raises:
        ValueError: another shape or type, a token that comes back, or a class token dropped.
    """
    if tuple(keep.shape) != shape or keep.dtype != torch.bool:
        raise ValueError(
            f"keep must be a bool tensor {shape} (batch, depth, tokens), not {keep.dtype} "
            f"{tuple(keep.shape)}"
        )
    if (keep[:, 1:] & ~keep[:, :-1]).any():
        raise ValueError("keep brings a token back after a layer that dropped it")
    if class_token_stays and not keep[:, :, 0].all():
        raise ValueError("keep drops the class token, which mode = 's2s' computes in every layer")


def prior_divergence(halting: Tensor, prior: Sequence[float], *, s2s: bool) -> Tensor:
    """How far the layers' shares of the halting scores are from the prior; 0 where it is negative.

    Args:
        halting: (batch, depth, tokens) h.
        prior: one value a layer; need not sum to 1.
        s2s: patches alone, and shares normalised after clamping; else, as NVIDIA's code, all tokens
            of all images but the first.
    """
    scores = halting[:, :, 1:] if s2s else halting[1:]
    mean = scores.mean((0, 2))
    shares = (mean / mean.sum()).clamp(LOWEST, HIGHEST)
    if s2s:
        shares = shares / shares.sum()
    # over layers, "batchmean" of one row of them: divided by the depth
    target = torch.tensor(prior, dtype=shares.dtype, device=shares.device)
    divergence = torch.nn.functional.kl_div(shares.log(), target, reduction="batchmean")
    # a batch of one image leaves NVIDIA's mean empty, which is not positive either
    return divergence if bool(divergence > 0) else torch.zeros_like(divergence)
