"""Two-stage distillation: losses by hand, what each stage touches, samples counted, same bits."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.data.batches import collate
from benchmarks.data.image_data import ImageData
from benchmarks.data.images import ImageSplit
from benchmarks.data.load import EncodedSplit, load_data
from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.planning.points import Point
from benchmarks.training import prepare
from benchmarks.training.artifacts import ArtifactStore
from benchmarks.training.build import build_model
from benchmarks.training.distil import distil, stages
from benchmarks.training.distil_losses import halting_loss, hidden_loss, logit_loss
from benchmarks.training.evaluate import predict
from benchmarks.training.loop import DivergedError, train
from benchmarks.training.prepare import ensure_artifact, prepare_subject
from benchmarks.training.recipe import Recipe
from benchmarks.training.start import start_from_base
from models.avit_config import AViTConfig
from models.bert_config import BertConfig
from models.bert_hybrid_config import BertHybridConfig
from models.config import TrainedSummary
from models.interface import TokenDecisions
from models.vit_config import ViTConfig
from models.vit_hybrid_config import ViTHybridConfig

SIZES: dict[str, Any] = {"depth": 3, "d_model": 12, "n_heads": 3}
OF_DATA: dict[str, Any] = {"channels": 1, "max_length": 8, "n_classes": 3}
VIT = ViTConfig(**SIZES, **OF_DATA, patch_size=2)
AVIT = AViTConfig(**SIZES, **OF_DATA, patch_size=2, keep_ratio=0.6)
BERT = BertConfig(**SIZES, vocab_size=26, n_classes=3, max_length=9)
RECIPE = Recipe(batch_size=16)


def image_split(name: str, n: int, seed: int) -> ImageSplit:
    """Squares of noise; the label says which third of the rows is bright."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, n)
    pixels = random.integers(0, 150, (n, 1, 8, 8))
    for image, label in zip(pixels, labels, strict=True):
        image[0, 3 * label : 3 * label + 2] += 100
    return ImageSplit(
        name=name,
        row_ids=np.arange(n, dtype=np.int64),
        pixels=pixels.astype(np.uint8),
        labels=labels.astype(np.int64),
        mean=np.full(1, 0.3, np.float32),
        std=np.full(1, 0.2, np.float32),
    )


def image_data(n_train: int = 100) -> ImageData:
    return ImageData(
        card=cast(Any, SimpleNamespace(name="squares", run_name="squares")),
        classes=("a", "b", "c"),
        channels=1,
        image_size=8,
        train=image_split("train", n_train, 0),
        validation=image_split("validation", 40, 1),
        hash="abc",
        partial=False,
        note="",
        _test=image_split("test", 40, 2),
    )


def text_data() -> Any:
    def split(n: int, seed: int) -> EncodedSplit:
        random = np.random.default_rng(seed)
        lengths, labels = random.integers(1, 9, n), random.integers(0, 3, n)
        tokens = [random.integers(2, 10, m) + 8 * y for m, y in zip(lengths, labels, strict=True)]
        return EncodedSplit(
            name="train",
            row_ids=np.arange(n, dtype=np.int64),
            tokens=np.concatenate(tokens).astype(np.int32),
            segments=None,
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            labels=labels.astype(np.int64),
        )

    card = SimpleNamespace(name="texts", run_name="texts")
    return SimpleNamespace(
        card=card, classes=("a", "b", "c"), train=split(100, 0), validation=split(40, 1)
    )


def teacher_of(config: Any) -> Any:
    teacher: Any = build_model(config, 0)
    if isinstance(config, AViTConfig):
        start_from_base(teacher, build_model(VIT, 0).state_dict(), image_data())
    return teacher.eval()


def student_of(teacher: Any, **declared: Any) -> Any:
    config = teacher.config
    kind: Any = BertHybridConfig if config.inputs == "text" else ViTHybridConfig
    given = {"vocab_size": 26} if config.inputs == "text" else {"channels": 1}
    made = kind(**declared, **given, n_classes=3, max_length=config.max_length).resolve(
        TrainedSummary(params=asdict(config), k_histogram=None, mean_macs=1.0)
    )
    student: Any = build_model(made, 1)
    student.load_teacher(teacher.state_dict())
    return student


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


def test_hidden_losses_by_hand() -> None:
    student = torch.tensor([[[1.0, 0.0], [2.0, 2.0]]])
    teacher = torch.tensor([[[0.0, 1.0], [1.0, 1.0]]])
    assert hidden_loss(student, teacher, None, "mse").item() == pytest.approx(1.0)
    # orthogonal at the first place, parallel at the second: the cosine is over channels
    assert hidden_loss(student, teacher, None, "cosine").item() == pytest.approx(0.5)
    first = torch.tensor([[True, False]])
    assert hidden_loss(student * 3, teacher, first, "mse").item() == pytest.approx((9 + 1) / 2)
    assert hidden_loss(student, teacher, first, "cosine").item() == pytest.approx(1.0)
    assert hidden_loss(student, teacher, ~first & False, "mse").item() == 0.0


def test_logit_loss_by_hand() -> None:
    student, teacher = torch.tensor([[0.0, 0.0]]), torch.tensor([[2.0, 0.0]])
    p = 1 / (1 + math.exp(-1.0))
    divergence = p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))
    assert logit_loss(student, teacher).item() == pytest.approx(4 * divergence, rel=1e-5)
    assert logit_loss(teacher, teacher).item() == pytest.approx(0.0, abs=1e-7)


def decisions(halting: Tensor, keep: Tensor) -> TokenDecisions:
    return TokenDecisions(keep.sum(2), keep, halting, torch.zeros(keep.shape[::2]))


def test_halting_loss_by_hand() -> None:
    """One image, three layers, a class token and two patches; one patch is dropped after layer 0."""
    keep = torch.tensor([[[1, 1, 1], [1, 1, 0], [1, 1, 0]]]).bool()
    wanted = torch.tensor([[[0.9, 0.5, 0.99], [0.9, 0.5, 0.0], [1.0, 1.0, 0.0]]])
    found = torch.tensor([[[0.1, 0.25, 0.5], [0.1, 0.4, 0.7], [0.3, 0.3, 0.3]]])

    def kl(p: float, q: float) -> float:
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    divergence = (kl(0.5, 0.25) + kl(0.99, 0.5)) / 2 + kl(0.5, 0.4)
    survive_1 = (0.75 + 0.5) / 2
    survive_2 = (0.75 * 0.6 + 0.5 * 0.3) / 2
    gaps = (survive_1 - 0.5) ** 2 + (survive_2 - 0.5) ** 2
    loss = halting_loss(decisions(found, keep), decisions(wanted, keep))
    assert loss.item() == pytest.approx(divergence + 5 * gaps, rel=1e-5)


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


def test_the_first_loss_is_the_one_by_hand() -> None:
    """One step of stage 1 on all rows: the record's parts from the captured activations."""
    teacher, data = teacher_of(VIT), image_data(16)
    declared = {"hidden_weight": 2.0, "task_weight": 0.5, "logit_weight": 0.25}
    student = student_of(teacher, replace=(0, 1), samples=16, stage1_share=1.0, **declared)
    batch: Any = collate(data.train, np.arange(16))
    heads = []
    with torch.no_grad():
        for model in (student, teacher):
            for module in model.modules():
                module.training = not isinstance(module, nn.Dropout)
            for mixer in model.mixers():
                mixer.capture = True
            logits = model(*batch.inputs).logits
            heads.append((logits, [mixer.captured for mixer in model.mixers()]))
            for mixer in model.mixers():
                mixer.capture, mixer.captured = False, None
    (own, mine), (theirs, others) = heads
    wanted = {
        "hidden": 2.0 * sum(((mine[i] - others[i]) ** 2).mean().item() for i in (0, 1)),
        "task": 0.5 * nn.functional.cross_entropy(own, batch.labels).item(),
        "logits": 0.25 * logit_loss(own, theirs).item(),
    }
    losses = distil(student, teacher, data, RECIPE, 0).epochs[0].losses
    for name, value in wanted.items():
        assert losses[name] == pytest.approx(value, rel=1e-3), name
    assert losses["total"] == pytest.approx(sum(wanted.values()), rel=1e-3)


def test_the_first_halting_loss_is_a_tenth_of_the_one_by_hand() -> None:
    teacher, data = teacher_of(AVIT), image_data(16)
    student = student_of(teacher, replace=(1,), samples=16, stage1_share=1.0)
    (pixels,) = cast(Any, collate(data.train, np.arange(16))).inputs
    with torch.no_grad():
        for model in (student, teacher):
            for module in model.modules():
                module.training = not isinstance(module, nn.Dropout)
        wanted = teacher(pixels).tokens
        assert not wanted.keep.all()
        loss = halting_loss(student(pixels, keep=wanted.keep).tokens, wanted).item()
    losses = distil(student, teacher, data, RECIPE, 0).epochs[0].losses
    assert losses["halting"] == pytest.approx(0.1 * loss, rel=1e-3)
    total = losses["hidden"] + losses["task"] + losses["halting"]
    assert losses["total"] == pytest.approx(total, rel=1e-5)


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


def test_a_gate_is_calibrated_on_validation_and_the_ratio_reached_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
