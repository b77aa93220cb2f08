"""The kinds of token mixers: their options, what they need, and one line each; without torch."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One kind of token mixer.

    Attributes:
        target: `module:Class` of the implementation.
        summary: one line.
        options: names and defaults of what can be chosen beside the geometry.
        trainable: whether it brings parameters of its own; W^O, which it takes from the attention
            that it replaces, is none of these.
        one_way: its name where `bidirectional` is False; empty without that option.
        keeps_width: whether its heads together must be as wide as the model, because it splits or
            averages the residual stream itself.
    """

    target: str
    summary: str
    options: Mapping[str, bool | int] = field(default_factory=dict)
    trainable: bool = True
    one_way: str = ""
    keeps_width: bool = False


KINDS: Mapping[str, Kind] = {
    "attention": Kind(
        "models.mixers.attention:Attention",
        "multi-head self-attention, what the others stand in for",
    ),
    "bilstm": Kind(
        "models.mixers.bilstm:BiLSTM",
        "a bidirectional LSTM per head between two projections",
        {"bidirectional": True},
        one_way="lstm",
    ),
    "bilstm-half": Kind(
        "models.mixers.bilstm:HalfBiLSTM",
        "a bidirectional LSTM per head, half as wide each way, without projections of its own",
        {"bidirectional": True},
        one_way="lstm-half",
        keeps_width=True,
    ),
    "bigru": Kind(
        "models.mixers.bigru:BiGRU",
        "a bidirectional GRU per head between two projections",
        {"bidirectional": True},
        one_way="gru",
    ),
    "bimamba": Kind(
        "models.mixers.bimamba:BiMamba",
        "a Mamba-2 state space per direction",
        {"state": 128, "conv": 4, "bidirectional": True},
        one_way="mamba",
    ),
    "linear-attention": Kind(
        "models.mixers.linear_attention:LinearAttention",
        "attention with elu + 1 in place of the softmax, linear in the number of tokens",
    ),
    "conv": Kind(
        "models.mixers.conv:Conv",
        "a depth-wise convolution of the values along the tokens",
        {"kernel_size": 7},
    ),
    "mean": Kind(
        "models.mixers.mean:Mean",
        "every token gets the mean token",
        trainable=False,
        keeps_width=True,
    ),
    "identity": Kind(
        "models.mixers.identity:Identity",
        "nothing: the layer's residual passes by",
        trainable=False,
    ),
}


def find(name: str) -> Kind:
    """The kind of that name.

    Raises:
        ValueError: there is none; names the nearest.
    """
    if name not in KINDS:
        raise ValueError(_unknown(name, KINDS, "mixer"))
    return KINDS[name]


def resolve(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A kind's options, defaults filled in.

    Raises:
        ValueError: the kind has no such option, or it cannot have that value.
    """
    defaults = find(name).options
    for option, value in options.items():
        if option not in defaults:
            raise ValueError(_unknown(option, defaults, f"option of the mixer '{name}'"))
        default = defaults[option]
        whole = type(default) is int  # which a truth value is not
        if type(value) is not type(default) or (whole and value < 1):
            wanted = "a whole number from 1 on" if whole else "true or false"
            raise ValueError(f"{option} of the mixer '{name}' is {wanted}, not {value!r}")
        if option == "kernel_size" and value % 2 == 0:
            raise ValueError(
                f"kernel_size of the mixer '{name}' must be odd, so that a token lies in the middle "
                f"of its neighbours: not {value}"
            )
    return {**defaults, **options}


def check(
    name: str, d_model: int, n_heads: int, head_dim: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    """See `resolve`; also checks that the kind can have this geometry.

    Raises:
        ValueError: see `resolve`; or a width that does not fit.
    """
    resolved = resolve(name, options)
    sizes = {"d_model": d_model, "n_heads": n_heads, "head_dim": head_dim}
    for size, value in sizes.items():
        if value < 1:
            raise ValueError(f"{size} must be at least 1, not {value}")
    if KINDS[name].keeps_width and n_heads * head_dim != d_model:
        raise ValueError(
            f"the mixer '{name}' takes the model's own channels as they are, so n_heads x head_dim "
            f"= {n_heads} x {head_dim} = {n_heads * head_dim} must be d_model = {d_model}"
        )
    if name == "bilstm-half" and resolved["bidirectional"] and head_dim % 2:
        raise ValueError(
            f"the mixer 'bilstm-half' halves each head for its two directions: head_dim must be "
            f"even, not {head_dim}"
        )
    return resolved


def label(name: str, options: Mapping[str, Any]) -> str:
    """How a table names the mixer: its kind, its one-way name, and options that differ.

    Raises:
        ValueError: see `resolve`.
    """
    kind = find(name)
    resolved = resolve(name, options)
    base = name if resolved.get("bidirectional", True) else f"{kind.one_way} (one way)"
    others = [
        f"{option} {value}"
        for option, value in resolved.items()
        if option != "bidirectional" and value != kind.options[option]
    ]
    return ", ".join([base, *others])


def check_layers(replace: Sequence[int], depth: int) -> tuple[int, ...]:
    """The layers to replace, in ascending order.

    Args:
        replace: indices, the first layer being 0.
        depth: number of layers.

    Raises:
        ValueError: an index is no layer's, or comes twice; names it and the depth.
    """
    seen: set[int] = set()
    for index in replace:
        if type(index) is not int:
            raise ValueError(f"replace: {index!r} is not a layer's index")
        if not 0 <= index < depth:
            raise ValueError(
                f"replace: there is no layer {index} among {depth}; they are 0 to {depth - 1}"
            )
        if index in seen:
            raise ValueError(f"replace: layer {index} (of {depth}) is named twice")
        seen.add(index)
    return tuple(sorted(seen))


def divided(d_model: int, n_heads: int) -> int:
    """Width of one of `n_heads` heads that share `d_model`.

    Raises:
        ValueError: the heads cannot share it evenly.
    """
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(
            f"n_heads = {n_heads} does not divide d_model = {d_model}: choose other heads, or give "
            "head_dim"
        )
    return d_model // n_heads


def _unknown(name: str, known: Iterable[str], kind: str) -> str:
    names = sorted(known)
    asked = str(name).casefold()
    near = difflib.get_close_matches(asked, names, n=2, cutoff=0.4)
    near += [n for n in names if n not in near and (n in asked or asked in n)][:1]
    question = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else "."
    return f"unknown {kind} '{name}'{question} Known: {', '.join(names) or 'none'}."
