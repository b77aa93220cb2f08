"""How important each head of a trained dense model is, measured on its training split.

Source: Michel et al. 2019 (arXiv 1905.10650): I_h = E_x |dL(x)/d xi_h|, where xi_h = 1 multiplies
head h's output; scores are l2-normalised in each layer, which changes no order within a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from benchmarks.data.batches import eval_batches

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.data.load import EncodedSplit
    from models.static_heads import StaticHeads

BATCH_SIZE = 64


def head_importance(model: StaticHeads, split: EncodedSplit) -> Tensor:
    """Importance (depth, n_heads), of l2 norm 1 in each layer; dropout is off.

    Args:
        model: with the dense model's weights.
        split: labelled rows to average over.
    """
    model.eval()
    total = torch.zeros(model.config.depth, model.config.n_heads, dtype=torch.float64)
    for batch in eval_batches(split, BATCH_SIZE):
        of_texts: Any = batch
        ids, padding, segments = of_texts.inputs
        gradients = model.head_gradients(ids, padding, segments, batch.labels)
        total += gradients.abs().double().sum(0)
    return torch.nn.functional.normalize(total / max(1, len(split)), dim=1).float()
