"""What mixers do about padding, which is always at the end of a sequence."""

from __future__ import annotations

import torch
from torch import Tensor


def lengths_of(key_padding_mask: Tensor | None) -> Tensor | None:
    """(batch,) int64, tokens that are not padding; None if nothing is padded.

    Raises:
        ValueError: a token follows padding.
    """
    if key_padding_mask is None or not key_padding_mask.any():
        return None
    lengths = (~key_padding_mask).sum(1)
    if not torch.equal(_beyond(lengths, key_padding_mask.shape[1]), key_padding_mask):
        raise ValueError("key_padding_mask: padding must be at the end of each sequence")
    return lengths


def reverse(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Turns the tokens of each sequence round; padding stays where it is.

    Args:
        x: (batch, tokens, width).
        lengths: see `lengths_of`.
    """
    if lengths is None:
        return x.flip(1)
    places = torch.arange(x.shape[1], device=x.device)
    turned = lengths[:, None] - 1 - places
    source = torch.where(turned < 0, places, turned)
    return x.gather(1, source[:, :, None].expand_as(x))


def zero_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Sets the padding of x (batch, tokens, width) to zero."""
    if lengths is None:
        return x
    return x.masked_fill(_beyond(lengths, x.shape[1])[:, :, None], 0.0)


def _beyond(lengths: Tensor, tokens: int) -> Tensor:
    return torch.arange(tokens, device=lengths.device) >= lengths[:, None]
