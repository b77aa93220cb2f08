"""What every token mixer offers: attention, and each module that can take its place."""

from __future__ import annotations

from torch import Tensor, nn


class TokenMixer(nn.Module):
    """Base of the sub-layers that mix tokens: (batch, tokens, d_model) to the same shape.

    Attributes:
        proj: the output projection W^O, or None for a mixer without one.
        plain: compute by the plain reference, which counters of FLOPs see through.
        capture: keep the concatenated head outputs of each forward pass in `captured`.
        captured: (batch, tokens, n_heads * head_dim), before W^O; with its gradient graph.
    """

    proj: nn.Module | None
    plain: bool = False
    capture: bool = False
    captured: Tensor | None = None

    def __init__(self) -> None:
        super().__init__()
        # a class attribute would hide the module that a subclass sets
        self.register_module("proj", None)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """The concatenated head outputs before W^O; zero at padding.

        Args:
            x: (batch, tokens, d_model).
            key_padding_mask: (batch, tokens) bool, True where the position is padding; padding is
                at the end.

        Returns:
            (batch, tokens, n_heads * head_dim).
        """
        raise NotImplementedError

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """See `heads`; the result has gone through W^O."""
        mixed = self.heads(x, key_padding_mask)
        if self.capture:
            self.captured = mixed
        if self.proj is None:
            raise ValueError(f"{type(self).__name__} has no output projection")
        projected: Tensor = self.proj(mixed)
        return projected
