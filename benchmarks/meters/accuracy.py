"""Accuracy on the test split, which is read here and nowhere else before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import MeterError
from benchmarks.meters.degenerate import degenerate_shares
from benchmarks.meters.inputs import data_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.shares import share
from benchmarks.records import Value
from benchmarks.training.evaluate import BATCH_SIZE, confusion, macro_f1, predict
from models.config import VisionConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from benchmarks.data.batches import Split
    from benchmarks.training.evaluate import Predictions
    from models.config import ModelConfig


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Accuracy as inference runs, and with training's gates where the model has any.

    Args:
        subject: a trained point.
        options: `batch_size` (default 64).

    Returns:
        accuracy and soft_accuracy (fraction, Wilson interval), macro_f1, mean_s and mean_k (whole
        model, then per layer with context `layer`), degenerate (context `heads`: see
        `degenerate_shares`); of a model that halts tokens mean_kept (tokens computed, class token
        included; whole model, then per layer) and keep_ratio (their share); per test row in
        `arrays`: row_id, label, prediction, length, loss, and per layer i: s_i, k_i and heads_i (bit h
        set: head h was computed), or kept_i.
    """
    batch_size = int(options.get("batch_size", BATCH_SIZE))
    test = subject.data.test()
    seed = subject.point.seed
    hard = predict(subject.model, test, batch_size=batch_size, seed=seed)
    counts = confusion(test.labels, hard.predicted, len(subject.data.classes))
    values = [
        share("accuracy", _right(test, hard), len(test)),
        Value(name="macro_f1", value=macro_f1(counts), unit="fraction", n=len(test)),
    ]
    series: dict[str, list[Any]] = {
        "recall": _recall(counts),
        "confusion": counts.tolist(),
    }
    if hard.s is not None and hard.k is not None and hard.selected is not None:
        soft = predict(subject.model, test, batch_size=batch_size, head_mode="soft", seed=seed)
        values.append(share("soft_accuracy", _right(test, soft), len(test)))
        values += _means("mean_s", hard.s, "fraction") + _means("mean_k", hard.k, "heads")
        n_heads = hard.selected.shape[2]
        values += [
            Value(
                name="degenerate", value=part, unit="fraction", n=len(test), context={"heads": kind}
            )
            for kind, part in degenerate_shares(hard.s, hard.k, n_heads).items()
        ]
        series["head_use"] = hard.selected.mean(axis=0).round(6).tolist()
    if hard.kept is not None:
        values += kept_tokens(hard.kept, subject.model.config)
    return Measurement(
        values=values,
        data=data_used(subject.data),
        series=series,
        info={"classes": list(subject.data.classes), "batch_size": batch_size},
        arrays=_per_row(test, hard),
    )


def kept_tokens(kept: NDArray[np.int64], config: ModelConfig) -> list[Value]:
    """mean_kept and keep_ratio of a model that halts tokens.

    Args:
        kept: (n, depth) tokens computed, class token included.
        config: of the model; knows how many tokens an image has.
    """
    if not isinstance(config, VisionConfig):
        raise MeterError(
            f"{type(config).__name__} halts tokens, but does not say how many there are"
        )
    ratios = _means("keep_ratio", kept / config.n_tokens, "fraction")
    in_all = [
        value.model_copy(update={"context": {**value.context, "tokens": "all"}}) for value in ratios
    ]
    return _means("mean_kept", kept, "tokens") + in_all


def losses(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) cross-entropy of each row in nats.

    Args:
        logits: (n, n_classes).
        labels: (n,).
    """
    scores = logits.astype(np.float64)
    highest = scores.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(scores - highest).sum(axis=1)) + highest[:, 0]
    loss: NDArray[np.float64] = log_sum - scores[np.arange(len(labels)), labels]
    return loss


def _right(split: Split, predictions: Predictions) -> int:
    return int((predictions.predicted == split.labels).sum())


def _means(name: str, per_layer: NDArray[Any], unit: str) -> list[Value]:
    """The mean over inputs and layers, then over inputs for each layer."""
    n = len(per_layer)
    whole = Value(name=name, value=float(per_layer.mean(dtype=np.float64)), unit=unit, n=n)
    layers = per_layer.mean(axis=0, dtype=np.float64)
    return [whole] + [
        Value(name=name, value=float(mean), unit=unit, n=n, context={"layer": layer})
        for layer, mean in enumerate(layers)
    ]


def _recall(counts: NDArray[np.int64]) -> list[float | None]:
    """Per class, the share of its rows that were recognised; None for a class without rows."""
    rows = counts.sum(axis=1)
    return [
        round(float(right / n), 6) if n else None
        for right, n in zip(np.diag(counts), rows, strict=True)
    ]


def _per_row(split: Split, predictions: Predictions) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, NDArray[Any]] = {
        "row_id": split.row_ids,
        "label": split.labels.astype(np.int16),
        "prediction": predictions.predicted.astype(np.int16),
        "length": np.asarray(split.lengths, dtype=np.int32),
        "loss": losses(predictions.logits, split.labels).astype(np.float32),
    }
    if predictions.s is not None and predictions.k is not None and predictions.selected is not None:
        bits = 1 << np.arange(predictions.selected.shape[2], dtype=np.int64)
        for layer in range(predictions.s.shape[1]):
            columns[f"s_{layer}"] = predictions.s[:, layer].astype(np.float32)
            columns[f"k_{layer}"] = predictions.k[:, layer].astype(np.int8)
            columns[f"heads_{layer}"] = predictions.selected[:, layer] @ bits
    if predictions.kept is not None:
        for layer, kept in enumerate(predictions.kept.T):
            columns[f"kept_{layer}"] = kept.astype(np.int16)
    return pd.DataFrame(columns)
