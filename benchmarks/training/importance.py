"""How important each head of a trained dense model is, measured on its training split.

Source: Michel et al. 2019 (arXiv 1905.10650): I_h = E_x |dL(x)/d xi_h|, where xi_h = 1 multiplies
head h's output; scores are l2-normalised in each layer, which changes no order within a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from benchmarks.data.batches import eval_batches
from benchmarks.errors import UsageError
from models.static_heads import StaticHeads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from benchmarks.data.load import EncodedSplit, TextData
    from models.interface import Classifier

BATCH_SIZE = 64


def start_from_base(model: Classifier, state: Mapping[str, Tensor], data: TextData) -> None:
    """Gives a model its base's weights, and lets it choose heads by their importance.

    The choice is made on the training split: validation is kept for choices between models, and the
    test split is not looked at.

    Args:
        model: freshly built.
        state: the trained dense model's weights.
        data: what the base was trained on.

    Raises:
        UsageError: the weights are no dense encoder's of the model's size.
    """
    if not isinstance(model, StaticHeads):
        raise UsageError(f"{type(model).__name__} cannot start from another model's weights")
    try:
        model.start_from(state)
    except RuntimeError as error:
        raise UsageError(f"the base is no dense encoder of the same size: {error}") from error
    model.set_importance(head_importance(model, data.train))


def head_importance(model: StaticHeads, split: EncodedSplit) -> Tensor:
    """Importance (depth, n_heads), of l2 norm 1 in each layer; dropout is off.

    Args:
        model: with the dense model's weights.
        split: labelled rows to average over.
    """
    model.eval()
    total = torch.zeros(model.config.depth, model.config.n_heads, dtype=torch.float64)
    for batch in eval_batches(split, BATCH_SIZE):
        gradients = model.head_gradients(
            batch.input_ids, batch.key_padding_mask, batch.segment_ids, batch.labels
        )
        total += gradients.abs().double().sum(0)
    return torch.nn.functional.normalize(total / max(1, len(split)), dim=1).float()
