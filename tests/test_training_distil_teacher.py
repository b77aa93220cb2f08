"""The teacher before distillation: trained once and shared, its gate calibrated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_teachers import AVIT, SIZES, VIT, bits, image_data

from benchmarks.data.batches import collate
from benchmarks.errors import UsageError
from benchmarks.planning.points import Point
from benchmarks.training import prepare
from benchmarks.training.artifacts import ArtifactStore
from benchmarks.training.build import build_model
from benchmarks.training.evaluate import predict
from benchmarks.training.loop import train
from benchmarks.training.prepare import ensure_artifact, prepare_subject
from benchmarks.training.recipe import Recipe
from benchmarks.training.start import start_from_base


def test_a_gate_is_calibrated_on_all_images_for_validation_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = image_data()
    model: Any = build_model(AVIT, 1)
    given: list[torch.Tensor] = []
    monkeypatch.setattr(model, "calibrate", given.extend)
    start_from_base(model, build_model(VIT, 0).state_dict(), data)
    images: Any = collate(data.validation, range(len(data.validation)))
    assert torch.equal(torch.cat(given), images.pixel_values)


def test_the_ratio_that_calibration_reached_is_kept() -> None:
    data = image_data()
    base: Any = build_model(VIT, 0)
    model: Any = build_model(AVIT, 1)
    start_from_base(model, base.state_dict(), data)
    assert torch.equal(model.head.weight, base.head.weight)
    reached = predict(model, data.validation).keep_ratio
    assert reached is not None
    assert reached[0] == 1.0
    assert float(reached.mean()) == pytest.approx(0.6, abs=0.02)
    with pytest.raises(UsageError, match="weights do not fit AViT"):
        start_from_base(model, build_model(replace(VIT, d_model=24), 0).state_dict(), data)
    record = train(model, data, Recipe(epochs=1, batch_size=16, peak_lr=1e-4), 0)
    assert 0 < record.epochs[0].schedules["keep_ratio"] <= 1


def point(model: str, params: dict[str, Any], **needs: Any) -> Point:
    recipe = {"epochs": 1, "batch_size": 16}
    return Point(
        model=model, params=params, dataset="squares", max_length=8, recipe=recipe, **needs
    )


@pytest.mark.parametrize("halting", [False, True])
def test_a_teacher_is_trained_once_and_shared(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, *, halting: bool
) -> None:
    data = image_data()
    monkeypatch.setattr(prepare, "_load", lambda *_: data)
    monkeypatch.setattr(prepare, "artifact_key", lambda p: p.point_id)
    trained: list[str] = []
    original = prepare.train

    def spy(model: Any, *rest: Any) -> Any:
        trained.append(type(model).__name__)
        return original(model, *rest)

    monkeypatch.setattr(prepare, "train", spy)
    sizes = {**SIZES, "patch_size": 2}
    teacher = vit = point("vit", sizes)
    if halting:
        teacher = point("avit", {**sizes, "keep_ratio": 0.6, "finetune_epochs": 1}, base=vit)
    store = ArtifactStore(tmp_path)
    for replaced, mixer in (([1], "bilstm"), ([0, 2], "identity"), ([], "bilstm")):
        params = {"replace": replaced, "mixer": mixer, "samples": 32}
        student = point("vit-hybrid", params, source=teacher)
        artifact = ensure_artifact(student, store)
        assert artifact.record.epochs[-1].samples == 32
        subject = prepare_subject(student, store)
        found = predict(subject.model, data.validation)
        assert float((found.predicted == data.validation.labels).mean()) == pytest.approx(
            artifact.validation.accuracy
        )
        assert (artifact.summary.keep_ratio is not None) == halting
    assert trained == (["ViT", "AViT"] if halting else ["ViT"])
    untrained = point("vit-hybrid", {"replace": [], "samples": 0}, source=teacher)
    same = prepare_subject(untrained, store).model
    original_model = prepare_subject(teacher, store).model
    assert bits(same) == bits(original_model)
    bad = point("vit-hybrid", {"replace": [3], "samples": 0}, source=teacher)
    with pytest.raises(UsageError, match="there is no layer 3 among 3"):
        ensure_artifact(bad, store)
