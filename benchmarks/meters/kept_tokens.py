"""What a model that halts tokens kept, and whether attention would have kept the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.records import Value
from benchmarks.sparsity.ranking import average_precision, overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

N_SHOWN = 8
"""Inputs whose kept tokens are recorded one by one, for a figure."""


def keep_ratios(keep: NDArray[np.bool_]) -> list[Value]:
    """Share of the tokens that the layers computed: whole model, then each layer.

    Args:
        keep: (n, depth, tokens), whether an input's token was computed; the class token first.

    Returns:
        keep_ratio with context `tokens` = "patches" (class token left out) or "all", and `layer`.
    """
    values = []
    for name, tokens in (("patches", keep[:, :, 1:]), ("all", keep)):
        per_layer = tokens.mean(axis=(0, 2), dtype=np.float64)
        values.append(_ratio(float(per_layer.mean()), len(keep), tokens=name))
        values += [
            _ratio(float(ratio), len(keep), tokens=name, layer=layer)
            for layer, ratio in enumerate(per_layer)
        ]
    return values


def agreement(keep: NDArray[np.bool_], attention: NDArray[np.floating[Any]]) -> list[Value]:
    """How well the class token's attention to the patches tells which of them are kept.

    Inputs that keep all patches in a layer, or none, say nothing there and are left out; a layer
    where all are left out has no value.

    Args:
        keep: (n, depth, tokens), class token first.
        attention: (n, depth, tokens), the class token's attention in a model that halts nothing;
            not a number for a layer without attention.

    Returns:
        top_k_overlap, auprc and chance (the mean share of patches kept, which both would come to if
        the two had nothing to do with each other), with context `layer`.
    """
    measures: dict[str, Callable[..., float | None]] = {
        "top_k_overlap": overlap,
        "auprc": average_precision,
        "chance": lambda kept, _: float(kept.mean()),
    }
    values = []
    for layer in range(keep.shape[1]):
        kept, scores = keep[:, layer, 1:], attention[:, layer, 1:]
        told = [row for row in range(len(kept)) if 0 < kept[row].sum() < kept.shape[1]]
        if not told or not np.isfinite(scores).all():
            continue
        for name, measure in measures.items():
            found = [measure(kept[row], scores[row]) for row in told]
            mean = float(np.mean([value for value in found if value is not None]))
            values.append(
                Value(name=name, value=mean, unit="fraction", n=len(told), context={"layer": layer})
            )
    return values


def shown(keep: NDArray[np.bool_], row_ids: NDArray[np.int64]) -> list[dict[str, Any]]:
    """For a few inputs, how many layers computed each patch; no pixels.

    Args:
        keep: (n, depth, tokens), class token first.
        row_ids: (n,).

    Returns:
        row_id and layers, one number a patch in reading order.
    """
    rows = np.linspace(0, len(keep) - 1, min(N_SHOWN, len(keep))).round().astype(int)
    return [
        {"row_id": int(row_ids[row]), "layers": keep[row, :, 1:].sum(axis=0).tolist()}
        for row in rows
    ]


def _ratio(value: float, n: int, **context: int | str) -> Value:
    return Value(name="keep_ratio", value=value, unit="fraction", n=n, context=dict(context))
