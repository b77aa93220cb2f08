"""Two-stage distillation: what each stage touches, samples counted, same bits."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, cast

import pytest
import torch
from tiny_teachers import (
    AVIT,
    BERT,
    RECIPE,
    VIT,
    bits,
    image_data,
    student_of,
    teacher_of,
    text_data,
)
from torch import Tensor

from benchmarks.data.load import load_data
from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.training.build import build_model
from benchmarks.training.distil import distil, stages
from benchmarks.training.evaluate import predict
from benchmarks.training.loop import DivergedError, train
from benchmarks.training.recipe import Recipe
from models.config import TrainedSummary
from models.vit_hybrid_config import ViTHybridConfig


@pytest.mark.parametrize("config", [VIT, AVIT, BERT], ids=["vit", "avit", "bert"])
@pytest.mark.parametrize("mixer", ["bilstm", "conv"])
def test_stage_1_touches_the_new_modules_alone(config: Any, mixer: str) -> None:
    teacher = teacher_of(config)
    data = text_data() if config is BERT else image_data()
    student = student_of(teacher, replace=(0, 2), mixer=mixer, samples=64, stage1_share=1.0)
    before, of_teacher, modes = (
        bits(student),
        bits(teacher),
        [m.training for m in teacher.modules()],
    )
    record = distil(student, teacher, data, RECIPE, 0)
    new = {id(parameter) for parameter in student.new_parameters()}
    for name, parameter in student.named_parameters():
        changed = bits(student)[name] != before[name]
        assert changed == (id(parameter) in new), name
        assert parameter.requires_grad
    assert bits(teacher) == of_teacher
    assert [m.training for m in teacher.modules()] == modes
    assert not any(mixer.capture or mixer.captured is not None for mixer in student.mixers())
    assert not any(mixer.capture or mixer.captured is not None for mixer in teacher.mixers())
    parts = {"hidden", "task", "total"} | ({"halting"} if config is AVIT else set())
    assert set(record.epochs[-1].losses) == parts
    assert record.epochs[-1].schedules["stage"] == 1.0
    assert ("keep_ratio" in record.epochs[-1].schedules) == (config is AVIT)


def test_stage_1_brings_the_students_heads_to_the_teachers() -> None:
    teacher = teacher_of(VIT)
    train(teacher, image_data(), Recipe(epochs=2, batch_size=16), 0)
    student = student_of(teacher, replace=(1,), samples=2000, stage1_share=1.0, stage1_lr=1e-2)
    record = distil(student, teacher, image_data(), RECIPE, 0)
    hidden = [epoch.losses["hidden"] for epoch in record.epochs]
    assert hidden[-1] < 0.5 * hidden[0]


@pytest.mark.parametrize("mixer", ["identity", "mean", "bilstm", "nothing"])
def test_every_student_sees_exactly_its_samples(
    mixer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher, data = teacher_of(VIT), image_data(70)
    chosen = {} if mixer == "nothing" else {"replace": (1,), "mixer": mixer}
    student = student_of(teacher, **chosen, samples=250)
    seen: list[int] = []
    forward = student.forward
    monkeypatch.setattr(
        student,
        "forward",
        lambda *inputs, **options: (
            seen.append(len(inputs[0]) if student.training else 0) or forward(*inputs, **options)
        ),
    )
    record = distil(student, teacher, data, RECIPE, 0)
    first = 167 if mixer == "bilstm" else 0
    assert stages(student) == (first, 250 - first)
    assert sum(seen) == 250
    assert [epoch.epoch for epoch in record.epochs] == list(range(1, 11))
    assert [epoch.samples for epoch in record.epochs][-1] == 250
    assert all(25 * epoch.epoch <= epoch.samples < 25 * epoch.epoch + 16 for epoch in record.epochs)
    stage = [epoch.schedules["stage"] for epoch in record.epochs]
    assert stage == [1.0] * (6 if first else 0) + [2.0] * (4 if first else 10)
    assert not student.training
    assert record.steps >= 250 // 16
    assert set(record.epochs[-1].losses) == {"task", "total"}


@pytest.mark.parametrize(
    ("config", "more"), [(VIT, set()), (AVIT, {"halting"})], ids=["vit", "avit"]
)
def test_stage_2_learns_from_the_labels_alone(config: Any, more: set[str]) -> None:
    teacher = teacher_of(config)
    student = student_of(teacher, replace=(1,), samples=320, stage1_share=0.5)
    found: dict[float, set[str]] = {}
    for epoch in distil(student, teacher, image_data(), RECIPE, 0).epochs:
        found.setdefault(epoch.schedules["stage"], set()).update(epoch.losses)
    assert found == {1.0: {"hidden", "task", "total"} | more, 2.0: {"task", "total"}}


@pytest.mark.parametrize(("weight", "calls"), [(0.0, 3), (0.5, 6)])
def test_the_teacher_runs_once_a_batch_for_all_replaced_layers(weight: float, calls: int) -> None:
    teacher = teacher_of(VIT)
    declared = {"samples": 96, "stage1_share": 0.5, "logit_weight": weight}
    student = student_of(teacher, replace=(0, 2), **declared)
    seen: list[Tensor] = []
    teacher.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    distil(student, teacher, image_data(96), RECIPE, 0)
    assert len(seen) == calls


def test_the_course_is_that_of_a_fixed_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    teacher, data = teacher_of(VIT), image_data(96)
    student = student_of(teacher, samples=48)
    monkeypatch.setattr("benchmarks.training.distil.COURSE_ROWS", 7)
    course = distil(student, teacher, data, RECIPE, 0).epochs
    seven = at_most(data.validation, 7)
    right = predict(student, seven).predicted == seven.labels
    assert course[-1].validation_accuracy == pytest.approx(float(right.mean()))
    sevenths = [7 * part.validation_accuracy for part in course]
    assert sevenths == pytest.approx([round(count) for count in sevenths])


def test_a_student_may_have_batches_of_its_own() -> None:
    teacher = teacher_of(VIT)
    student = student_of(teacher, samples=96, batch_size=8)
    assert distil(student, teacher, image_data(96), RECIPE, 0).steps == 12


def test_more_parts_than_steps_leave_fewer_records() -> None:
    teacher = teacher_of(VIT)
    record = distil(student_of(teacher, samples=40), teacher, image_data(96), RECIPE, 0)
    assert [(e.epoch, e.samples) for e in record.epochs] == [(4, 16), (8, 32), (10, 40)]


def test_each_stage_has_a_warm_up_and_a_cosine_of_its_own() -> None:
    teacher = teacher_of(VIT)
    declared = {"samples": 1600, "stage1_share": 0.5, "stage1_lr": 1e-2, "stage2_lr": 1e-3}
    student = student_of(teacher, replace=(1,), **declared)
    rates = [e.lr for e in distil(student, teacher, image_data(), RECIPE, 0).epochs]
    assert rates[0] > rates[1] > rates[4] > 0
    assert rates[5] == pytest.approx(1e-3, rel=0.15)
    assert rates[9] < rates[5]


def test_a_student_of_a_halting_teacher_is_forced_to_its_masks_in_stage_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    teacher = teacher_of(AVIT)
    student = student_of(teacher, replace=(1,), samples=96)
    forced: list[tuple[bool, Tensor | None]] = []
    forward = student.forward

    def spy(pixels: Tensor, keep: Tensor | None = None) -> Any:
        if student.training:
            forced.append((bool(student.head.weight.requires_grad), keep))
            if keep is not None:
                with torch.no_grad():
                    assert torch.equal(teacher(pixels).tokens.keep, keep)
        return forward(pixels, keep)

    monkeypatch.setattr(student, "forward", spy)
    distil(student, teacher, image_data(96), RECIPE, 0)
    assert len(forced) == 4 + 2
    assert all((keep is None) == trainable for trainable, keep in forced)
    assert not cast(Tensor, forced[0][1]).all()


@pytest.mark.parametrize("config", [VIT, AVIT, BERT], ids=["vit", "avit", "bert"])
def test_same_seed_same_bits(config: Any) -> None:
    data = text_data() if config is BERT else image_data()
    results = []
    for seed, noise in ((3, 0), (3, 7), (4, 0)):
        torch.manual_seed(noise)
        teacher = teacher_of(config)
        student = student_of(teacher, replace=(1,), samples=100)
        record = distil(student, teacher, data, RECIPE, seed)
        results.append((bits(student), [e.losses for e in record.epochs]))
    assert results[0] == results[1]
    assert results[0][0] != results[2][0]


def test_the_teachers_own_loss_would_be_told_from_a_diverged_one() -> None:
    teacher = teacher_of(VIT)
    student = student_of(teacher, replace=(1,), samples=64, stage1_lr=1e30)
    with pytest.raises(DivergedError, match=r"stage 1, step \d of 3: .*stage1_lr than 1e\+30"):
        distil(student, teacher, image_data(), Recipe(batch_size=16, clip=1e30, warmup=0.0), 0)


def test_no_training_rows_is_one_clear_message() -> None:
    teacher = teacher_of(VIT)
    with pytest.raises(UsageError, match="'squares' has no training rows"):
        distil(student_of(teacher, samples=8), teacher, image_data(0), RECIPE, 0)


def test_images_are_changed_for_student_and_teacher_alike() -> None:
    teacher = teacher_of(VIT)
    seen: list[Tensor] = []
    hook = teacher.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    student = student_of(teacher, replace=(1,), samples=48, stage1_share=1.0)
    student.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0]) if module.training else None
    )
    recipe = replace(RECIPE, augment="crop-flip", mixup=0.8, label_smoothing=0.1)
    record = distil(student, teacher, image_data(96), recipe, 0)
    hook.remove()
    assert len(seen) == 6
    assert all(torch.equal(*seen[i : i + 2]) for i in (0, 2, 4))
    assert math.isfinite(record.epochs[-1].losses["total"])


@pytest.mark.parametrize("changed", [{"augment": "crop"}, {"mixup": 0.2}, {"cutmix": 1.0}])
def test_texts_are_not_changed_at_random(changed: dict[str, Any]) -> None:
    teacher = teacher_of(BERT)
    recipe = replace(RECIPE, **changed)
    with pytest.raises(UsageError, match=r"for images; data set 'texts' holds texts"):
        train(teacher, text_data(), recipe, 0)


@pytest.mark.slow
def test_on_real_digits_a_student_without_attention_learns() -> None:
    data: Any = load_data("digits", max_length=8)
    config = replace(VIT, depth=4, d_model=48, dropout=0.0, n_classes=10, channels=data.channels)
    teacher: Any = build_model(config, 0)
    record = train(teacher, data, Recipe(epochs=8, batch_size=16, peak_lr=2e-3), 0)
    best = record.epochs[-1].validation_accuracy
    assert best > 0.7
    made = ViTHybridConfig(
        replace=(0, 1, 2, 3), samples=3000, batch_size=16, channels=1, n_classes=10, max_length=8
    ).resolve(TrainedSummary(params=asdict(config), k_histogram=None, mean_macs=1.0))
    student: Any = build_model(made, 1)
    student.load_teacher(teacher.state_dict())
    labels = data.validation.labels
    before = float((predict(student, data.validation).predicted == labels).mean())
    course = [
        epoch.validation_accuracy for epoch in distil(student, teacher, data, RECIPE, 0).epochs
    ]
    assert before < 0.3
    assert course[-1] > 0.5, (before, course)
