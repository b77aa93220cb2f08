"""Predictions of a model on a split, in the split's order, and the scores read from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.data.batches import eval_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data.batches import Split
    from models.interface import Classifier, HeadDecisions, HeadMode

PREDICT_SEED = 20_260_422
"""Restarts a model's own generators before each pass, so that random heads can be repeated."""

BATCH_SIZE = 64
"""Rows of a pass. Random heads depend on it, so meters that must see the same draws share it."""


@dataclass(frozen=True)
class Predictions:
    """What a model said about each row of a split, in the split's order.

    Attributes:
        logits: (n, n_classes) float32.
        s: (n, depth) float32, share of heads asked for; None for a model without head decisions,
            as `k` and `selected`.
        k: (n, depth) int64, heads computed.
        selected: (n, depth, n_heads) bool, which.
        kept: (n, depth) int64, tokens computed, class token included; None for a model that halts
            no tokens.
        keep_ratio: (depth,) float64, share of the patches that each layer computed; likewise.
    """

    logits: NDArray[np.float32]
    s: NDArray[np.float32] | None = None
    k: NDArray[np.int64] | None = None
    selected: NDArray[np.bool_] | None = None
    kept: NDArray[np.int64] | None = None
    keep_ratio: NDArray[np.float64] | None = None

    @property
    def work(self) -> NDArray[np.int64] | None:
        """(n, depth) heads or tokens that each layer computed; None: all, always."""
        return self.k if self.k is not None else self.kept

    @property
    def predicted(self) -> NDArray[np.int64]:
        """(n,) class with the greatest logit."""
        best: NDArray[np.int64] = self.logits.argmax(axis=1).astype(np.int64)
        return best


@torch.inference_mode()
def predict(
    model: Classifier,
    split: Split,
    *,
    batch_size: int = BATCH_SIZE,
    head_mode: HeadMode = "auto",
    seed: int = 0,
) -> Predictions:
    """Runs the model in eval mode over a split and leaves its mode as it was.

    Args:
        model: any classifier.
        split: n rows.
        batch_size: rows per forward pass.
        head_mode: how heads are gated; "auto" is as inference runs.
        seed: of the model's own random choices, if it makes any; the point's, so that they differ
            between the seeds that are averaged over.
    """
    was_training, was_mode = model.training, model.head_mode
    model.eval()
    model.head_mode = head_mode
    model.reseed(PREDICT_SEED + seed)
    logits: list[torch.Tensor] = []
    heads: list[HeadDecisions] = []
    kept: list[torch.Tensor] = []
    patches: list[torch.Tensor] = []
    row_ids: list[NDArray[np.int64]] = []
    try:
        for batch in eval_batches(split, batch_size):
            output = model(*batch.inputs)
            logits.append(output.logits)
            row_ids.append(np.asarray(batch.row_ids, dtype=np.int64))
            if output.heads is not None:
                heads.append(output.heads)
            if output.tokens is not None:
                kept.append(output.tokens.kept)
                patches.append(output.tokens.keep[:, :, 1:].double().mean(2))
    finally:
        model.train(was_training)
        model.head_mode = was_mode
    if not logits:
        return Predictions(np.zeros((0, model.config.n_classes), np.float32))
    order = _positions(split.row_ids, np.concatenate(row_ids))

    def gather(parts: list[torch.Tensor]) -> NDArray[Any]:
        return torch.cat(parts).numpy()[order]

    if not heads:
        return Predictions(
            gather(logits),
            kept=gather(kept) if kept else None,
            keep_ratio=torch.cat(patches).mean(0).numpy() if kept else None,
        )
    return Predictions(
        gather(logits),
        s=gather([part.budget.float() for part in heads]),
        k=gather([part.k.long() for part in heads]),
        selected=gather([part.selected for part in heads]),
    )


def _positions(wanted: NDArray[np.int64], got: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each wanted row id, where it stands in `got`."""
    by_id = np.argsort(got, kind="stable")
    found = by_id[np.searchsorted(got, wanted, sorter=by_id)]
    if len(got) != len(wanted) or not np.array_equal(got[found], wanted):
        raise ValueError("batches do not hold each row of the split exactly once")
    return found.astype(np.int64)


def accuracy(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Share of rows whose prediction is the label."""
    return float(np.mean(labels == predicted))


def confusion(
    labels: NDArray[np.int64], predicted: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """(n_classes, n_classes) counts; row: label, column: prediction."""
    flat = np.bincount(labels * n_classes + predicted, minlength=n_classes * n_classes)
    return flat.reshape(n_classes, n_classes).astype(np.int64)


def macro_f1(counts: NDArray[np.int64]) -> float:
    """Mean F1 over the classes that occur as label or as prediction.

    Args:
        counts: a `confusion` matrix.
    """
    right = np.diag(counts)
    total = counts.sum(axis=0) + counts.sum(axis=1)
    occurs = total > 0
    return float(np.mean(2 * right[occurs] / total[occurs]))
