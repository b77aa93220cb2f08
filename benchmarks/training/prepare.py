"""Brings a point to where a meter can measure it: trained once, loaded, in eval mode."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import MODELS
from benchmarks.data.load import load_data
from benchmarks.errors import StorageError, UsageError
from benchmarks.meters.interface import Subject
from benchmarks.planning.keys import artifact_key
from benchmarks.training.build import build_config, build_model
from benchmarks.training.distil import distil
from benchmarks.training.loop import DivergedError, train
from benchmarks.training.recipe import Recipe
from benchmarks.training.record import TrainingRecord
from benchmarks.training.start import start_from_base
from benchmarks.training.summary import summarise
from models.state_dict import fill

if TYPE_CHECKING:
    from benchmarks.data.load import AnyData
    from benchmarks.planning.points import Point
    from benchmarks.training.artifacts import Artifact, ArtifactStore
    from benchmarks.training.loop import Report
    from models.interface import Classifier


def ensure_artifact(point: Point, store: ArtifactStore, report: Report | None = None) -> Artifact:
    """The trained weights of a point, from the store or by training now; its source comes first.

    A model that takes its source's weights unchanged has no artifact of its own: the source's is
    returned. One that starts from a base's weights, or is built on a teacher, has, even if it is not
    trained further. A teacher is trained once, whatever number of students it has.

    Args:
        point: a trained point.
        store: where artifacts lie.
        report: called with the progress of a training.

    Raises:
        UsageError: the point cannot be built, or lacks its source.
        StorageError: the store is full, read-only or damaged.
        DivergedError: the loss became infinite or not a number.
    """
    if point.recipe is None:
        raise UsageError(f"point '{point.label or point.point_id}' has fresh weights by design")
    source = _ensure_source(point, store, report)
    if source is not None and MODELS.get(point.model).source == "weights":
        return source
    base = _ensure_base(point, store, report)
    key = artifact_key(point)
    if store.has(key):
        return store.load(key)
    with store.lock(key):
        if store.has(key):
            return store.load(key)
        data = _data(point)
        config = build_config(point, data, source.summary if source else None)
        model = build_model(config, point.seed)
        if base is not None:
            start_from_base(model, base.state_dict(), data)
        if config.source == "teacher":
            record = _distil(model, data, point, store, report)
        else:
            record = _train(model, data, point, report)
        _require_finite(model)
        validation, summary = summarise(model, data)
        return store.save(
            key,
            declared=point.declared(),
            config=asdict(config),
            state=model.state_dict(),
            record=record,
            validation=validation,
            summary=summary,
        )


def prepare_subject(point: Point, store: ArtifactStore) -> Subject:
    """The point's model in eval mode with its weights, and its data.

    Args:
        point: trained (its artifact is made if it is missing) or not (fresh weights by its seed).
        store: where artifacts lie.

    Raises:
        UsageError, StorageError, DivergedError: as `ensure_artifact`.
    """
    data = _data(point)
    if point.recipe is None:
        return Subject(
            point, _ready(build_model(build_config(point, data), point.seed)), data, None
        )
    artifact = ensure_artifact(point, store)
    source = _ensure_source(point, store, None)
    config = build_config(point, data, source.summary if source else None)
    model = build_model(config, point.seed, pretrained=False)
    try:
        fill(model, artifact.state_dict())
    except ValueError as error:
        raise StorageError(
            f"the weights in {artifact.folder} do not fit the model '{point.model}': {error}"
        ) from error
    base = None if point.base is None else partial(prepare_subject, point.base, store)
    return Subject(point, _ready(model), data, artifact, base)


def _distil(
    student: Any, data: AnyData, point: Point, store: ArtifactStore, report: Report | None
) -> TrainingRecord:
    """Gives the student its teacher's weights and trains it, as its configuration says."""
    if point.source is None:
        raise UsageError(f"point '{point.label or point.point_id}' has no teacher")
    teacher: Any = prepare_subject(point.source, store).model
    try:
        student.load_teacher(teacher.state_dict())
    except ValueError as error:
        raise UsageError(
            f"model '{point.model}' cannot be built on '{point.source.model}': {error}"
        ) from error
    if student.config.samples == 0:
        return TrainingRecord(())
    recipe = Recipe.from_declared(point.recipe or {})
    return distil(student, teacher, data, recipe, point.seed, report)


def _train(model: Classifier, data: AnyData, point: Point, report: Report | None) -> TrainingRecord:
    recipe = Recipe.from_declared(point.recipe or {})
    epochs = model.config.training_epochs(recipe.epochs)
    if epochs == 0:
        return TrainingRecord(())
    return train(model, data, replace(recipe, epochs=epochs), point.seed, report)


def _require_finite(model: Classifier) -> None:
    """The loop looks at each loss before its step, so the last step's weights are still unseen."""
    for name, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise DivergedError(
                f"training diverged in its last step: {name} is not finite. A lower "
                "recipe.peak_lr may help."
            )


def _ensure_source(point: Point, store: ArtifactStore, report: Report | None) -> Artifact | None:
    needs = MODELS.get(point.model).source
    if needs == "none":
        return None
    if point.source is None:
        raise UsageError(
            f"point '{point.label or point.point_id}': model '{point.model}' takes its {needs} "
            "from a trained source; give the variant a `source`"
        )
    return ensure_artifact(point.source, store, report)


def _ensure_base(point: Point, store: ArtifactStore, report: Report | None) -> Artifact | None:
    if MODELS.get(point.model).base == "none":
        return None
    if point.base is None:
        raise UsageError(
            f"point '{point.label or point.point_id}': model '{point.model}' starts from a trained "
            "model's weights; give the variant a `base`"
        )
    return ensure_artifact(point.base, store, report)


@lru_cache(maxsize=4)
def _load(dataset: str, max_length: int, train_fraction: float, vocabulary: str | None) -> AnyData:
    return load_data(
        dataset, max_length=max_length, train_fraction=train_fraction, vocabulary=vocabulary
    )


def _data(point: Point) -> AnyData:
    return _load(point.dataset, point.max_length, point.train_fraction, point.vocabulary)


def _ready(model: Classifier) -> Classifier:
    model.set_progress(1.0)
    return model.eval()
