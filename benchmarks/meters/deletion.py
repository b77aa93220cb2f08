"""What each layer's attention is worth: validation accuracy with it deleted, without training."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.meters.inputs import validation_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.options import with_defaults
from benchmarks.meters.shares import share, with_interval
from benchmarks.records import Value
from benchmarks.sparsity.layers import layers_of, output_of
from benchmarks.statistics.intervals import paired_adjusted_wald
from benchmarks.training.evaluate import BATCH_SIZE, predict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import nn

    from benchmarks.statistics.intervals import Interval

DEFAULTS = {"n_inputs": 2000, "margin": 0.01, "batch_size": BATCH_SIZE}
N_QUARTERS = 4


@dataclass(frozen=True)
class Deletion:
    """A set of layers and what records call it."""

    layers: tuple[int, ...]
    context: Mapping[str, int | float | str]


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Accuracy lost by deleting the attention of single layers and of groups of layers.

    A deleted sub-layer adds nothing to the residual; everything else stays, nothing is trained. A
    model that halts tokens halts them by what it then computes.

    Args:
        subject: a trained point whose model tells of its layers.
        options: `n_inputs` of the validation split at most, a fixed sample (default 2000); `margin`
            (default 0.01): a layer or group whose deletion costs less is uninformative;
            `batch_size`.

    Returns:
        validation_accuracy of the model as it is; deleted_accuracy, accuracy_drop (positive: lost;
        interval over inputs, the weights held fixed) and informative (1 or 0), with context `layer`
        or, for groups, `group` and `layers`. `info.undecided` lists those whose interval holds the
        margin.

    Raises:
        UsageError: the model tells of no layers.
    """
    chosen = with_defaults("deletion", options, DEFAULTS)
    try:
        layers = layers_of(subject.model)
    except ValueError as error:
        raise UsageError(f"meter 'deletion': {error}") from error
    split = at_most(subject.data.validation, chosen["n_inputs"])

    def right() -> NDArray[np.bool_]:
        said = predict(
            subject.model, split, batch_size=chosen["batch_size"], seed=subject.point.seed
        )
        answers: NDArray[np.bool_] = said.predicted == split.labels
        return answers

    whole = right()
    values = [share("validation_accuracy", int(whole.sum()), len(whole))]
    undecided = []
    mixing = [output_of(layer) is not None for layer in layers]
    for deletion in deletions(mixing):
        with deleted([layers[index] for index in deletion.layers]):
            without = right()
        drop = paired_adjusted_wald(whole, without)
        values += _values(deletion, without, drop, chosen["margin"])
        if drop.low < chosen["margin"] <= drop.high:
            undecided.append(dict(deletion.context))
    return Measurement(
        values=values,
        data=validation_used(subject.data, len(split)),
        info={
            "margin": chosen["margin"],
            "undecided": undecided,
            "without_mixing": [index for index, mixes in enumerate(mixing) if not mixes],
        },
    )


def deletions(has_mixing: Sequence[bool]) -> list[Deletion]:
    """Every single layer, then quarters, last half and all; groups of one layer are left out.

    Args:
        has_mixing: for each layer, whether there is anything to delete.
    """
    depth = len(has_mixing)
    single = [Deletion((i,), {"layer": i}) for i in range(depth) if has_mixing[i]]
    quarters = np.array_split(np.arange(depth), N_QUARTERS)
    groups = [(f"quarter {i}", part.tolist()) for i, part in enumerate(quarters, start=1)]
    groups.append(("last half", list(range(depth // 2, depth))))
    groups.append(("all", list(range(depth))))
    return single + [
        Deletion(
            tuple(i for i in group if has_mixing[i]),
            {"group": name, "layers": f"{group[0]}-{group[-1]}"},
        )
        for name, group in groups
        if len(group) > 1 and any(has_mixing[i] for i in group)
    ]


@contextmanager
def deleted(layers: Sequence[nn.Module | None]) -> Iterator[None]:
    """Inside, these sub-layers give zeros."""

    def nothing(module: nn.Module, args: Any, output: Any) -> Any:
        del module, args
        if isinstance(output, torch.Tensor):
            return torch.zeros_like(output)
        mixed, *decided = output
        return (torch.zeros_like(mixed), *decided)

    outputs = [output for layer in layers if (output := output_of(layer)) is not None]
    handles = [output.register_forward_hook(nothing) for output in outputs]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _values(
    deletion: Deletion, without: NDArray[np.bool_], drop: Interval, margin: float
) -> list[Value]:
    context = dict(deletion.context)
    kept = share("deleted_accuracy", int(without.sum()), len(without))
    return [
        kept.model_copy(update={"context": context}),
        with_interval("accuracy_drop", drop, "fraction", context),
        Value(
            name="informative",
            value=float(drop.estimate >= margin),
            unit="count",
            n=drop.n,
            context=context,
        ),
    ]
