"""Makes token mixers by name, and puts them where a trained model has its attention."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from models.mixers.interface import TokenMixer
from models.mixers.names import KINDS, check, check_layers, divided

Site = tuple[nn.Module, str]
"""Where a layer has its attention: the module that holds it, and under which name."""


def make_mixer(
    kind: str, d_model: int, n_heads: int, head_dim: int | None = None, **options: Any
) -> TokenMixer:
    """A fresh token mixer.

    Args:
        kind: see `names.KINDS`.
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head; None means d_model / n_heads.
        options: the kind's own.

    Raises:
        ValueError: there is no such kind or option, or it cannot have this geometry.
    """
    width = divided(d_model, n_heads) if head_dim is None else head_dim
    check(kind, d_model, n_heads, width, options)
    mixer: TokenMixer = _class_of(kind)(d_model, n_heads, width, **options)
    return mixer


def replace_attention(
    sites: Sequence[Site],
    replace: Sequence[int],
    kind: str,
    d_model: int,
    n_heads: int,
    head_dim: int | None = None,
    *,
    adapt: Callable[[TokenMixer], nn.Module] | None = None,
    **options: Any,
) -> dict[int, TokenMixer]:
    """Replaces the attention of some layers by fresh mixers, which take over its W^O.

    Args:
        sites: of all layers, in order.
        replace: layers, the first being 0; none leaves the model as it is.
        kind: see `make_mixer`, as for the arguments that follow.
        d_model: width of the residual stream.
        n_heads: heads.
        head_dim: width of a head; None means d_model / n_heads.
        adapt: makes of a mixer what the layer wants, where that is not a mixer itself.
        options: the kind's own.

    Returns:
        The new mixers by layer.

    Raises:
        ValueError: a layer that does not exist or is named twice; see also `make_mixer`; or
            attention of another geometry.
    """
    made: dict[int, TokenMixer] = {}
    for index in check_layers(replace, len(sites)):
        owner, name = sites[index]
        mixer = make_mixer(kind, d_model, n_heads, head_dim, **options)
        attention = getattr(owner, name)
        take_output(mixer, attention, index)
        mixer.train(attention.training)
        made[index] = mixer
        setattr(owner, name, mixer if adapt is None else adapt(mixer))
    return made


def take_output(mixer: TokenMixer, attention: nn.Module, index: int) -> None:
    """Gives a mixer a copy of an attention layer's W^O, in the form that the layer has it.

    Args:
        mixer: stays as it is if it has no W^O.
        attention: has it as `proj`, an `nn.Linear`, or as `output`, which `models.dense` stores
            (in, out).
        index: the layer's, for the error.

    Raises:
        ValueError: W^O is of another shape, or the layer has none.
    """
    if mixer.proj is None:
        return
    parts = dict(attention.named_children())
    output = parts.get("proj", parts.get("output"))
    if output is None:
        raise ValueError(
            f"layer {index}: {type(attention).__name__} has no output projection to take over"
        )
    wanted = tuple(mixer.proj.get_parameter("weight").shape)
    found = tuple(output.get_parameter("weight").shape)
    if found != (wanted if isinstance(output, nn.Linear) else wanted[::-1]):
        raise ValueError(
            f"layer {index}: the output projection is of shape {found}, and the mixer's (out, in) "
            f"would be {wanted}: give the teacher's d_model, n_heads and head_dim"
        )
    mixer.proj = copy.deepcopy(output)
    parameter = next(output.parameters())
    mixer.to(parameter.device, parameter.dtype)


def _class_of(kind: str) -> Any:
    module, _, name = KINDS[kind].target.partition(":")
    return getattr(importlib.import_module(module), name)
