"""MACs over the test inputs: by each model's formula, checked by two counters that do not know it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import MeterError
from benchmarks.meters.flop_handlers import (
    ForwardCount,
    count_by_dispatch,
    count_with_fvcore,
    executed_counter,
)
from benchmarks.meters.inputs import data_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.options import with_defaults
from benchmarks.records import Value
from benchmarks.training.evaluate import BATCH_SIZE, predict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.data.batches import Split
    from models.config import Macs, ModelConfig
    from models.interface import Classifier

DEFAULTS = {"batch_size": BATCH_SIZE}
TOLERANCE = 0.01
"""Largest relative difference between the formula and a counter."""


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Cost of the test inputs, each at its own length and with its own number of heads.

    Args:
        subject: a trained or fresh model.
        options: `batch_size` of the pass that `macs_executed` is counted on (default: as the
            accuracy meter, so that random heads are drawn alike).

    Returns:
        macs (whole model), macs_attention (core and projections), macs_attention_core,
        macs_controllers, flops (twice macs) and elementwise, each with context `stat` = mean, p50
        and p95; macs_executed, what a pass in batches really multiplied, padding included, per
        input; macs_at_k, the mean cost if every layer used exactly k heads. Per test row in
        `arrays`: row_id, length, macs, macs_attention.

    Raises:
        MeterError: on a real input the formula and a counter differ by more than 1 %.
    """
    batch_size = int(with_defaults("flops", options, DEFAULTS)["batch_size"])
    model, test = subject.model, subject.data.test()
    config = model.config
    counter = executed_counter()
    counted = _telling(model, test, batch_size)
    with counter:
        predictions = predict(model, counted, batch_size=batch_size, seed=subject.point.seed)
    costs = costs_of(config, test.lengths, predictions.work)
    checked = check_formula(model, test, predictions.work)
    columns = {
        "macs": ("MACs", [cost.total for cost in costs]),
        "macs_attention": ("MACs", [cost.attention for cost in costs]),
        "macs_attention_core": ("MACs", [cost.attention_core for cost in costs]),
        "macs_controllers": ("MACs", [cost.controllers for cost in costs]),
        "flops": ("FLOPs", [2 * cost.total for cost in costs]),
        "elementwise": ("FLOPs", [cost.elementwise for cost in costs]),
    }
    values = [
        value for name, (unit, column) in columns.items() for value in _spread(name, unit, column)
    ]
    values.append(
        Value(
            name="macs_executed",
            value=counter.get_total_flops() / 2 / len(counted),
            unit="MACs",
            n=len(counted),
            context={"stat": "mean", "batch_size": batch_size},
        )
    )
    values += _at_declared_k(config, test.lengths, adaptive=predictions.k is not None)
    return Measurement(
        values=values,
        data=data_used(subject.data),
        info={"check": checked, "mean_length": float(np.mean(test.lengths))},
        arrays=_per_row(test, costs),
    )


def _telling(model: Classifier, test: Split, batch_size: int) -> Split:
    """What has to be run to know all costs: one batch, where inputs of one size all get equal work."""
    first = test.take(np.arange(min(batch_size, len(test))))
    alike = len(set(np.asarray(test.lengths).tolist())) == 1
    return first if alike and predict(model, first, batch_size=batch_size).work is None else test


def costs_of(
    config: ModelConfig, lengths: Sequence[int] | NDArray[Any], work: NDArray[np.int64] | None
) -> list[Macs]:
    """The formula's cost of each input.

    Args:
        config: states the formula.
        lengths: (n,) tokens of each text, padding excluded, or side of each image in pixels.
        work: (n, depth) heads or tokens that each layer computed; None: all.
    """
    cost = lru_cache(maxsize=None)(config.macs)
    if work is None:
        return [cost(int(length)) for length in lengths]
    rows = zip(lengths, work.tolist(), strict=True)
    return [cost(int(length), tuple(row)) for length, row in rows]


def check_formula(
    model: Classifier, split: Split, work: NDArray[np.int64] | None
) -> dict[str, Any]:
    """Holds the formula against fvcore and torch's dispatch counter on a few real inputs, unpadded.

    Args:
        model: in eval mode.
        split: where the inputs come from: the shortest, median and longest, and those with the
            least and the most work.
        work: (n, depth) heads or tokens computed in the pass over the whole split, to choose inputs
            by.

    Returns:
        The figures for each input, the largest relative difference to each counter, and the
        operators that fvcore counts beside matrix multiplications or ignores.

    Raises:
        MeterError: a difference of more than 1 %.
    """
    from benchmarks.data.batches import collate

    inputs: list[dict[str, Any]] = []
    largest = {"fvcore": 0.0, "dispatch": 0.0}
    excluded: dict[str, float] = {}
    ignored: dict[str, int] = {}
    for index in _telling_rows(np.asarray(split.lengths), work):
        batch = collate(split, np.asarray([index]))
        length = int(split.lengths[index])
        row: dict[str, Any] = {"row_id": int(split.row_ids[index]), "length": length}
        for name, count in (("fvcore", count_with_fvcore), ("dispatch", count_by_dispatch)):
            counted = count(model, batch)
            # k of this very pass: a model that draws its heads at random draws them anew
            formula = model.config.macs(length, counted.k).total
            difference = _difference(formula, counted.macs)
            if difference > TOLERANCE:
                raise MeterError(_disagreement(name, row, formula, counted))
            row[name] = {"k": counted.k, "formula": formula, "counted": counted.macs}
            largest[name] = max(largest[name], difference)
            excluded.update(counted.excluded)
            ignored.update(counted.ignored)
        inputs.append(row)
    return {
        "largest_difference": largest,
        "tolerance": TOLERANCE,
        "inputs": inputs,
        "fvcore_excluded": sorted(excluded),
        "fvcore_ignored": sorted(ignored),
    }


def _difference(formula: float, counted: float) -> float:
    if formula == counted:
        return 0.0
    return abs(formula - counted) / max(abs(formula), abs(counted))


def _disagreement(name: str, row: dict[str, Any], formula: float, counted: ForwardCount) -> str:
    table = "\n".join(
        f"  {op:32s} {macs:>16,.0f}" for op, macs in sorted(counted.by_operator.items())
    )
    return (
        f"the formula says {formula:,.0f} MACs, {name} counts {counted.macs:,.0f} "
        f"({_difference(formula, counted.macs):.1%} apart; at most {TOLERANCE:.0%} is allowed) on "
        f"row {row['row_id']} of length {row['length']}, heads or tokens per layer: {counted.k}. "
        f"By operator:\n{table}"
    )


def _telling_rows(lengths: NDArray[Any], work: NDArray[np.int64] | None) -> list[int]:
    by_length = np.argsort(lengths, kind="stable")
    rows = [by_length[0], by_length[len(by_length) // 2], by_length[-1]]
    if work is not None:
        total = work.sum(axis=1)
        rows += [total.argmin(), total.argmax()]
    # one of those that cost the same: images all have one size
    alike = {(int(lengths[row]), None if work is None else tuple(work[row])): row for row in rows}
    return sorted({int(row) for row in alike.values()})


def _spread(name: str, unit: str, column: Sequence[float]) -> list[Value]:
    p50, p95 = np.quantile(column, [0.5, 0.95])
    stats = {"mean": float(np.mean(column)), "p50": float(p50), "p95": float(p95)}
    return [
        Value(name=name, value=value, unit=unit, n=len(column), context={"stat": stat})
        for stat, value in stats.items()
    ]


def _at_declared_k(config: ModelConfig, lengths: NDArray[Any], *, adaptive: bool) -> list[Value]:
    """Mean cost over the inputs' lengths at each k: the same on every machine.

    A model whose head counts come from another's training has no such figure.
    """
    if config.source == "macs":
        return []
    choices = range(1, config.n_heads + 1) if adaptive else [config.n_heads]
    distinct, times = np.unique(lengths, return_counts=True)
    values = []
    for k in choices:
        heads = [k] * config.depth if adaptive else None
        per_length = [config.macs(int(length), heads).total for length in distinct]
        mean = float(np.dot(per_length, times) / times.sum())
        values.append(
            Value(
                name="macs_at_k",
                value=mean,
                unit="MACs",
                n=len(lengths),
                context={"k": k, "stat": "mean"},
            )
        )
    return values


def _per_row(split: Split, costs: Sequence[Macs]) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            "row_id": split.row_ids,
            "length": np.asarray(split.lengths, dtype=np.int32),
            "macs": [cost.total for cost in costs],
            "macs_attention": [cost.attention for cost in costs],
        }
    )
