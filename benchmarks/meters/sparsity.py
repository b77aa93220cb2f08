"""How sparse each layer's attention is, and what a model that halts tokens keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.data.batches import Batch, eval_batches
from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.meters.inputs import validation_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.kept_tokens import agreement, keep_ratios, shown
from benchmarks.meters.options import with_defaults
from benchmarks.records import Value
from benchmarks.sparsity.layers import layers_of, name_of
from benchmarks.sparsity.maps import has_maps, measured, projections, queries_and_keys
from benchmarks.sparsity.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from benchmarks.data.batches import AnyBatch, Split
    from models.interface import Classifier, ClassifierOutput

DEFAULTS = {"n_inputs": 256, "batch_size": 16}


@dataclass
class Maps:
    """What one pass over a split found, one entry a batch.

    Attributes:
        measures: by (measure, queries) the (batch, depth, heads) means; not a number where a layer
            or an input has none.
        class_rows: (batch, depth, tokens) attention of the first token, mean over heads; of images
            alone, whose batches can be joined.
        keep: (batch, depth, tokens), of a model that halts tokens.
        row_ids: (batch,).
    """

    measures: dict[tuple[str, str], list[NDArray[np.float64]]] = field(default_factory=dict)
    class_rows: list[NDArray[np.float64]] = field(default_factory=list)
    keep: list[NDArray[np.bool_]] = field(default_factory=list)
    row_ids: list[NDArray[np.int64]] = field(default_factory=list)


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Attention sparsity by layer and head on the validation split, by which layers are chosen.

    Args:
        subject: a trained point whose model tells of its layers.
        options: `n_inputs` at most, a fixed sample of the split (default 256); `batch_size`.

    Returns:
        sparsity with context `measure` (see `benchmarks.sparsity.measures`), `queries` ("all", or
        "class" where the model classifies by a token of its own) and `layer`: mean over heads and
        inputs, n inputs; first the mean over layers, without `layer`. In `series` for each measure
        and kind of queries the (depth, heads) means, and with `_se` the standard error between
        inputs of each layer's mean; None for a layer without attention weights, which `info` names.
        For a model that halts tokens also keep_ratio, top_k_overlap, auprc and chance (see
        `kept_tokens`) and in `series.kept_layers` the layers that computed each patch of a few
        images.

    Raises:
        UsageError: the model tells of no layers.
    """
    chosen = with_defaults("sparsity", options, DEFAULTS)
    model, validation = subject.model, subject.data.validation
    try:
        layers = layers_of(model)
    except ValueError as error:
        raise UsageError(f"meter 'sparsity': {error}") from error
    with_tokens = validation.take(np.flatnonzero(np.asarray(validation.lengths) > 0))
    split = at_most(with_tokens, chosen["n_inputs"])
    found = read(model, split, chosen["batch_size"])
    values, series = _sparsity(found)
    info: dict[str, Any] = {
        "without_weights": {
            str(index): name_of(layer) for index, layer in enumerate(layers) if not has_maps(layer)
        }
    }
    if found.keep:
        keep = np.concatenate(found.keep)
        dense = model if subject.base is None else subject.base().model
        attention = read(dense, split, chosen["batch_size"], halting=False).class_rows
        values += keep_ratios(keep)
        series["kept_layers"] = shown(keep, np.concatenate(found.row_ids))
        if attention:  # a student with all layers replaced has none
            values += agreement(keep, np.concatenate(attention))
            info["dense_attention"] = (
                "the same weights, no token halted" if subject.base is None else "the base's"
            )
    missing = sorted(map(int, info["without_weights"]))
    return Measurement(
        values=values,
        data=validation_used(subject.data, len(split)),
        series=series,
        info=info,
        warnings=[f"no attention weights in layers {missing}: no value"] if missing else [],
    )


@torch.inference_mode()
def read(model: Classifier, split: Split, batch_size: int, *, halting: bool = True) -> Maps:
    """Runs a model over a split and measures each layer's attention weights.

    Args:
        model: in eval mode.
        split: inputs with at least one token.
        batch_size: inputs per forward pass.
        halting: whether a model that halts tokens does so.
    """
    layers = layers_of(model)
    maps = Maps()
    with projections(layers) as projected:
        for batch in eval_batches(split, batch_size):
            projected.clear()
            output = model(*batch.inputs)
            if output.tokens is not None and not halting:
                projected.clear()
                output = model(*batch.inputs, keep=torch.ones_like(output.tokens.keep))
            real = _real_tokens(batch, output, len(layers))
            _add(maps, layers, projected, real, first=_has_class_token(model))
            maps.row_ids.append(batch.row_ids.numpy())
            if output.tokens is not None:
                maps.keep.append(output.tokens.keep.numpy())
    return maps


def _add(
    maps: Maps,
    layers: list[Any],
    projected: Mapping[int, Tensor],
    real: Tensor | None,
    *,
    first: bool,
) -> None:
    """Measures one batch; `real` is (batch, depth, tokens), None where every place holds a token."""
    parts: dict[tuple[str, str], dict[int, Tensor]] = {}
    rows: dict[int, Tensor] = {}
    for index, qkv in projected.items():
        places = torch.ones(qkv.shape[:2], dtype=torch.bool) if real is None else real[:, index]
        layer = measured(*queries_and_keys(layers[index], qkv, places), places)
        kinds = {"all": layer.all_queries} | ({"class": layer.first_query} if first else {})
        for queries, by_measure in kinds.items():
            for name, values in by_measure.items():
                parts.setdefault((name, queries), {})[index] = values
        rows[index] = layer.first_row
    depth = len(layers)
    for key, by_layer in parts.items():
        maps.measures.setdefault(key, []).append(_stacked(by_layer, depth))
    if first and rows:
        maps.class_rows.append(_stacked(rows, depth))


def _stacked(by_layer: Mapping[int, Tensor], depth: int) -> NDArray[np.float64]:
    """(batch, depth, ...); not a number for the layers that are missing."""
    empty = torch.full_like(next(iter(by_layer.values())), math.nan)
    stacked = torch.stack([by_layer.get(index, empty) for index in range(depth)], 1)
    array: NDArray[np.float64] = stacked.double().numpy()
    return array


def _real_tokens(batch: AnyBatch, output: ClassifierOutput, depth: int) -> Tensor | None:
    if output.tokens is not None:
        return output.tokens.keep
    if isinstance(batch, Batch):
        return (~batch.key_padding_mask)[:, None].expand(-1, depth, -1)
    return None


def _has_class_token(model: Classifier) -> bool:
    return model.config.inputs == "image" or getattr(model.config, "pooling", None) == "cls"


def _sparsity(found: Maps) -> tuple[list[Value], dict[str, list[Any]]]:
    values: list[Value] = []
    series: dict[str, list[Any]] = {}
    for name in MEASURES:
        for queries in ("all", "class"):
            batches = found.measures.get((name, queries))
            if batches is None:
                continue
            array = np.concatenate(batches)
            context: dict[str, int | float | str] = {"measure": name, "queries": queries}
            layers = [_known(array[:, layer].mean(axis=1)) for layer in range(array.shape[1])]
            means = [float(known.mean()) for known in layers if len(known)]
            if not means:
                continue
            values.append(_value(float(np.mean(means)), len(array), context))
            values += [
                _value(float(known.mean()), len(known), {**context, "layer": layer})
                for layer, known in enumerate(layers)
                if len(known)
            ]
            series[f"{name}_{queries}"] = [
                [_mean(_known(array[:, layer, head])) for head in range(array.shape[2])]
                for layer in range(array.shape[1])
            ]
            series[f"{name}_{queries}_se"] = [_standard_error(known) for known in layers]
    return values, series


def _value(mean: float, n: int, context: dict[str, int | float | str]) -> Value:
    return Value(name="sparsity", value=mean, unit="fraction", n=n, context=context)


def _known(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return column[np.isfinite(column)]


def _mean(known: NDArray[np.float64]) -> float | None:
    return round(float(known.mean()), 6) if len(known) else None


def _standard_error(known: NDArray[np.float64]) -> float | None:
    return round(float(known.std(ddof=1)) / math.sqrt(len(known)), 6) if len(known) > 1 else None
