"""The control that mixes tokens as evenly as can be."""

from __future__ import annotations

from torch import Tensor, nn

from models.mixers.interface import TokenMixer
from models.mixers.names import check
from models.mixers.padding import lengths_of, zero_padding


class Mean(TokenMixer):
    """Gives every token the mean over the tokens that are not padding, through W^O.

    It has no parameters but W^O.

    Args:
        d_model: width of the residual stream, n_heads * head_dim.
        n_heads: heads of the attention it replaces.
        head_dim: width of one of them.

    Raises:
        ValueError: the heads together are not as wide as the model.
    """

    def __init__(self, d_model: int, n_heads: int, head_dim: int) -> None:
        check("mean", d_model, n_heads, head_dim, {})
        super().__init__()
        self.proj = nn.Linear(d_model, d_model)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`.

        Raises:
            ValueError: a token follows padding.
        """
        lengths = lengths_of(key_padding_mask)
        return zero_padding(_mean(x, lengths).expand_as(x), lengths)


def _mean(x: Tensor, lengths: Tensor | None) -> Tensor:
    """(batch, 1, d_model)."""
    if lengths is None:
        weights = x.new_full((x.shape[0], 1, x.shape[1]), 1.0 / x.shape[1])
    else:
        real = zero_padding(x.new_ones(*x.shape[:2], 1), lengths)
        weights = (real / lengths.clamp(min=1)[:, None, None]).transpose(1, 2)
    return weights @ x
