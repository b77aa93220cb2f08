"""What a trained model did on the validation split: its scores, and what dependent models see."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.training.evaluate import accuracy, confusion, macro_f1, predict
from benchmarks.training.record import ValidationScores
from models.config import TrainedSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data.load import AnyData
    from benchmarks.training.evaluate import Predictions
    from models.config import ModelConfig
    from models.interface import Classifier


def summarise(model: Classifier, data: AnyData) -> tuple[ValidationScores, TrainedSummary]:
    """What the validation split says of a trained model; the test split is not looked at."""
    split = data.validation
    hard = predict(model, split)
    counts = confusion(split.labels, hard.predicted, len(data.classes))
    soft = None
    if hard.k is not None:
        gated = predict(model, split, head_mode="soft")
        soft = accuracy(split.labels, gated.predicted)
    scores = ValidationScores(
        n=len(split),
        accuracy=accuracy(split.labels, hard.predicted),
        macro_f1=macro_f1(counts),
        soft_accuracy=soft,
    )
    summary = TrainedSummary(
        params=asdict(model.config),
        k_histogram=_k_histogram(hard, model.config.n_heads),
        mean_macs=_mean_macs(model.config, split.lengths, hard),
        lengths=[int(length) for length in split.lengths],
        keep_ratio=None if hard.keep_ratio is None else hard.keep_ratio.tolist(),
    )
    return scores, summary


def _k_histogram(predictions: Predictions, n_heads: int) -> list[list[int]] | None:
    if predictions.k is None:
        return None
    return [np.bincount(layer, minlength=n_heads + 1).tolist() for layer in predictions.k.T]


def _mean_macs(config: ModelConfig, lengths: NDArray[np.int64], predictions: Predictions) -> float:
    work: list[tuple[int, ...] | None] = (
        [None] * len(lengths)
        if predictions.work is None
        else [tuple(row) for row in predictions.work.tolist()]
    )
    inputs = Counter(zip(lengths.tolist(), work, strict=True))
    total = sum(config.macs(length, done).total * n for (length, done), n in inputs.items())
    return total / len(lengths)
