"""What a training left behind: validation scores, seconds and the course of the epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.errors import UsageError
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.shares import share
from benchmarks.planning.points import Point
from benchmarks.records import DataUsed, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.training.artifacts import Artifact


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Reads the artifact; runs nothing.

    Args:
        subject: a trained point.
        options: none.

    Returns:
        validation_accuracy (as inference runs, Wilson interval), validation_soft_accuracy,
        validation_macro_f1, train_seconds and train_steps; series with one entry per epoch. A point
        that uses another's weights has only train_seconds = 0 and says whose they are.

    Raises:
        UsageError: the point was not trained.
    """
    del options
    artifact = subject.artifact
    if artifact is None:
        raise UsageError(f"point '{subject.point.label}' was not trained: there is nothing to tell")
    trained = Point.from_declared(artifact.declared)
    if trained.point_id != subject.point.point_id:
        return Measurement(
            values=[Value(name="train_seconds", value=0.0, unit="s")],
            info={"weights_of": trained.point_id, "weights_of_model": trained.model},
        )
    return Measurement(
        values=_values(artifact),
        data=DataUsed(
            name=subject.data.card.run_name,
            split="validation",
            n=artifact.validation.n,
            hash=subject.data.hash,
            partial=subject.data.partial,
            note=subject.data.note,
        ),
        series=_series(artifact),
        info={"weights_sha256": artifact.weights_sha256, "torch": artifact.torch},
    )


def _values(artifact: Artifact) -> list[Value]:
    scores, record = artifact.validation, artifact.record
    values = [share("validation_accuracy", round(scores.accuracy * scores.n), scores.n)]
    if scores.soft_accuracy is not None:
        values.append(
            share("validation_soft_accuracy", round(scores.soft_accuracy * scores.n), scores.n)
        )
    return [
        *values,
        Value(name="validation_macro_f1", value=scores.macro_f1, unit="fraction", n=scores.n),
        Value(name="train_seconds", value=record.seconds, unit="s"),
        Value(name="train_steps", value=record.steps, unit="count"),
    ]


def _series(artifact: Artifact) -> dict[str, list[Any]]:
    """One list per quantity, one entry per epoch; loss parts as loss_NAME, schedules by name."""
    rows = []
    for epoch in artifact.record.epochs:
        row: dict[str, float | int | None] = {
            "epoch": epoch.epoch,
            "lr": epoch.lr,
            "seconds": epoch.seconds,
            "train_accuracy": epoch.train_accuracy,
            "validation_accuracy": epoch.validation_accuracy,
            "mean_s": epoch.mean_s,
            "mean_k": epoch.mean_k,
            "entropy": epoch.entropy,
            "samples": epoch.samples or None,
        }
        row |= {f"loss_{name}": loss for name, loss in epoch.losses.items()}
        row |= {f"schedule_{name}": value for name, value in epoch.schedules.items()}
        rows.append(row)
    # the stages of a distillation have other loss parts
    names = dict.fromkeys(name for row in rows for name in row)
    series = {name: [row.get(name) for row in rows] for name in names}
    return {
        name: entries for name, entries in series.items() if any(e is not None for e in entries)
    }
