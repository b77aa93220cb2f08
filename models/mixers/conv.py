"""The control that mixes only neighbours."""

from __future__ import annotations

from torch import Tensor, nn

from models.mixers.interface import TokenMixer
from models.mixers.names import check
from models.mixers.padding import lengths_of, zero_padding


class Conv(TokenMixer):
    """Values as attention has them, a depth-wise convolution along the tokens, W^O.

    Images are read row by row. The class token is the first of the sequence and has no special
    part: it sees the few tokens that follow it, as they see it, and beyond the ends there is zero.

    Args:
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head.
        kernel_size: tokens that one output sees, odd: itself and as many on either side.

    Raises:
        ValueError: a width below 1, or an even kernel.
    """

    def __init__(self, d_model: int, n_heads: int, head_dim: int, *, kernel_size: int = 7) -> None:
        check("conv", d_model, n_heads, head_dim, {"kernel_size": kernel_size})
        super().__init__()
        width = n_heads * head_dim
        self.value = nn.Linear(d_model, width)
        # two-dimensional, because torch's one-dimensional convolution first copies (batch, tokens,
        # width) to (batch, width, tokens) and takes twice as long or more
        self.conv = nn.Conv2d(
            width, width, (1, kernel_size), padding=(0, kernel_size // 2), groups=width
        )
        self.proj = nn.Linear(width, d_model)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `TokenMixer.heads`.

        Raises:
            ValueError: a token follows padding.
        """
        lengths = lengths_of(key_padding_mask)
        values = zero_padding(self.value(x), lengths)
        mixed = self.conv(values.transpose(1, 2).unsqueeze(2)).squeeze(2).transpose(1, 2)
        return zero_padding(mixed, lengths)
