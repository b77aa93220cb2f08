"""Filling a model from named tensors, and saying which of them does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


@torch.no_grad()
def fill(model: nn.Module, state: Mapping[str, Tensor], fresh: Sequence[str] = ()) -> None:
    """Fills the model in place, or nothing of it if a tensor does not fit.

    Args:
        model: any module.
        state: by the model's own names.
        fresh: beginnings of the names of what stays as it is.

    Raises:
        ValueError: a tensor is missing, left over or of another shape; names the first.
    """
    wanted = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith(tuple(fresh))
    }
    for name, tensor in wanted.items():
        if name not in state:
            raise ValueError(
                f"the weights have no {name}, where the model has {tuple(tensor.shape)}; they have "
                f"{len(state)} tensors, {', '.join(sorted(state)[:3])} …"
            )
        if state[name].shape != tensor.shape:
            raise ValueError(
                f"{name} is {tuple(state[name].shape)} in the weights, but the model needs "
                f"{tuple(tensor.shape)}"
            )
    for name, tensor in state.items():
        if name not in wanted:
            raise ValueError(
                f"{name} {tuple(tensor.shape)} of the weights has no place in the model"
            )
    for name, tensor in wanted.items():
        tensor.copy_(state[name])
