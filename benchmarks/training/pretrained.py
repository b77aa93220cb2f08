"""Pretrained tensors, read out of the package that their card names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.data.weights import find_weights
from benchmarks.data.weights_files import read_member
from benchmarks.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.data.weights import WeightsCard


def pretrained_state(name: str) -> dict[str, Tensor]:
    """The tensors of the weights called `name`, by transformers' names.

    Raises:
        UsageError: no such card, or `onnx` is needed and not installed.
        DataError: the package is missing, altered or unreadable.
    """
    card = find_weights(name)
    content = read_member(card, card.tensors.path)
    prefix = card.tensors.prefix
    read = _safetensors if card.tensors.format == "safetensors" else _onnx
    state = read(content, card)
    if card.tensors.positions:
        state[f"{prefix}embeddings.position_embeddings"] = _positions(state, card)
    return {
        key.removeprefix(prefix): tensor for key, tensor in state.items() if key.startswith(prefix)
    }


def _positions(state: dict[str, Tensor], card: WeightsCard) -> Tensor:
    import torch

    for part in card.tensors.positions:
        if part not in state:
            raise DataError(f"weights '{card.name}': {card.tensors.path} has no tensor {part}")
    return torch.cat([state[part] for part in card.tensors.positions], 1)


def _safetensors(content: bytes, card: WeightsCard) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        state: dict[str, Tensor] = load(content)
    except SafetensorError as error:
        raise DataError(f"weights '{card.name}': {card.tensors.path}: {error}") from error
    return state


def _onnx(content: bytes, card: WeightsCard) -> dict[str, Tensor]:
    """Named tensors as they are; a matrix is named after the bias that is added to its product.

    An exported graph keeps the names of embeddings, norms and biases, but its matrices are nameless
    and transposed.
    """
    import torch

    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise UsageError(
            f"weights '{card.name}' are an ONNX file, and onnx is not installed: "
            "pip install 'frugalbench[pretrained]'"
        ) from error
    try:
        graph = onnx.load_from_string(content).graph
    except Exception as error:  # what the parser raises is no part of its interface
        raise DataError(f"weights '{card.name}': {card.tensors.path}: {error}") from error
    tensors = {
        item.name: torch.from_numpy(numpy_helper.to_array(item).copy())
        for item in graph.initializer
    }
    users = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    state = dict(tensors)
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in tensors:
            continue
        for user in users[node.output[0]]:
            for name in user.input if user.op_type == "Add" else ():
                if name in tensors and name.endswith(".bias"):
                    matrix = name.removesuffix("bias") + "weight"
                    state[matrix] = tensors[node.input[1]].t().contiguous()
    return state
