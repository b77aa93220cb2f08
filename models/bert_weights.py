"""From transformers' BERT state dict to the layout of the encoders here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from models.dense import SelfAttention

if TYPE_CHECKING:
    from models.bert import PostNormEncoder

UNUSED = re.compile(r"embeddings\.position_ids$|pooler\.|cls\.|classifier\.")
"""Of a BERT checkpoint, what belongs to other heads than ours."""


@dataclass(frozen=True)
class _Target:
    """One checkpoint tensor, and the (view of a) parameter that it goes to."""

    name: str
    parameter: Tensor
    transposed: bool = False
    cut: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the checkpoint's tensor must have."""
        shape = tuple(self.parameter.shape)
        return shape[::-1] if self.transposed else shape

    def fits(self, found: Tensor) -> bool:
        """Whether the tensor can go there: of a table of positions the first rows are enough."""
        if self.cut:
            return found.shape[1:] == self.shape[1:] and found.shape[0] >= self.shape[0]
        return tuple(found.shape) == self.shape

    def fill(self, found: Tensor) -> None:
        """Copies the tensor's values."""
        found = found.t() if self.transposed else found[: len(self.parameter)]
        self.parameter.copy_(found)


@torch.no_grad()
def copy_weights(model: PostNormEncoder, state: Mapping[str, Tensor]) -> None:
    """Fills the encoder of `model` in place, or nothing of it if a tensor does not fit.

    Args:
        model: its attention layers must be `SelfAttention`s.
        state: by transformers' names, with or without a leading "bert.".

    Raises:
        ValueError: as `PostNormEncoder.load_pretrained`.
    """
    given = {name.removeprefix("bert."): tensor for name, tensor in state.items()}
    targets = list(_targets(model))
    for target in targets:
        if target.name not in given:
            raise ValueError(
                f"the pretrained weights have no {target.name}, where the model has "
                f"{target.shape}; they have {len(given)} tensors, "
                f"{', '.join(sorted(given)[:3])} …"
            )
        found = given[target.name]
        if not target.fits(found):
            at_least = "at least " if target.cut else ""
            raise ValueError(
                f"{target.name} is {tuple(found.shape)} in the pretrained weights, but the model "
                f"needs {at_least}{target.shape}"
            )
    known = {target.name for target in targets}
    for name, tensor in given.items():
        if name not in known and not UNUSED.match(name):
            raise ValueError(
                f"{name} {tuple(tensor.shape)} of the pretrained weights has no place in the "
                f"model (depth {model.config.depth})"
            )
    for target in targets:
        target.fill(given[target.name])


def _targets(model: PostNormEncoder) -> Iterator[_Target]:
    table = "embeddings.{}_embeddings.weight"
    yield _Target(table.format("word"), model.token.weight)
    yield _Target(table.format("position"), model.position.weight, cut=True)
    yield _Target(table.format("token_type"), cast(nn.Embedding, model.segment).weight)
    yield from _both("embeddings.LayerNorm", model.norm)
    for index, block in enumerate(model.blocks):
        layer = f"encoder.layer.{index}."
        attention = cast(SelfAttention, block.attention)
        heads, width = attention.n_heads, attention.head_dim
        for part, name in enumerate(("query", "key", "value")):
            # rows of the joint projection lie head by head, and within a head Q, K, V
            weight = attention.qkv.weight.view(heads, 3, width, -1)[:, part]
            bias = attention.qkv.bias.view(heads, 3, width)[:, part]
            yield _Joint(f"{layer}attention.self.{name}.weight", weight)
            yield _Joint(f"{layer}attention.self.{name}.bias", bias)
        out = f"{layer}attention.output."
        yield _Target(f"{out}dense.weight", attention.output.weight, transposed=True)
        yield _Target(f"{out}dense.bias", attention.output.bias)
        yield from _both(f"{out}LayerNorm", cast(nn.Module, block.attention_norm))
        yield from _both(f"{layer}intermediate.dense", cast(nn.Module, block.ffn_in))
        yield from _both(f"{layer}output.dense", cast(nn.Module, block.ffn_out))
        yield from _both(f"{layer}output.LayerNorm", cast(nn.Module, block.ffn_norm))


class _Joint(_Target):
    """A projection of all heads, (heads * head_dim, …), that goes to a view by heads."""

    @property
    def shape(self) -> tuple[int, ...]:
        heads, width, *rest = self.parameter.shape
        return (heads * width, *rest)

    def fill(self, found: Tensor) -> None:
        self.parameter.copy_(found.view(self.parameter.shape))


def _both(name: str, module: nn.Module) -> Iterator[_Target]:
    yield _Target(f"{name}.weight", cast(Tensor, module.weight))
    yield _Target(f"{name}.bias", cast(Tensor, module.bias))
