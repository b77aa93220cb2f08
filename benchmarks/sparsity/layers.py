"""What mixes tokens in each layer of a classifier, and where it joins the residual stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from models.mixers.interface import TokenMixer


def layers_of(model: nn.Module) -> list[nn.Module | None]:
    """The sub-layer that mixes tokens, for each layer; None for a layer without one.

    Raises:
        ValueError: the model does not tell of its layers.
    """
    mixers: Callable[[], Sequence[nn.Module]] | None = getattr(model, "mixers", None)
    blocks = getattr(model, "blocks", None)
    if mixers is not None:
        return list(mixers())
    if isinstance(blocks, nn.ModuleList):
        return [getattr(block, "attention", None) for block in blocks]
    raise ValueError(
        f"{type(model).__name__} offers neither mixers() nor blocks with an `attention`"
    )


def output_of(layer: nn.Module | None) -> nn.Module | None:
    """The module whose output a layer adds to the residual stream; None if it adds nothing.

    Of a token mixer it is the output projection, which every way of running it ends in.
    """
    if isinstance(layer, TokenMixer):
        return layer.proj
    # a layer of a text encoder whose mixer has no output projection has None in its place
    return None if getattr(layer, "output", layer) is None else layer


def name_of(layer: nn.Module | None) -> str:
    """What mixes a layer's tokens, for a record."""
    return "none" if layer is None else type(getattr(layer, "mixer", layer)).__name__
