"""Hybrids: what they take from their teacher, what is theirs, and what they cost."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.training.build import build_model
from models.avit_config import AViTConfig
from models.bert_config import BertConfig
from models.bert_hybrid_config import BertHybridConfig
from models.config import ModelConfig, TrainedSummary
from models.mixers import costs
from models.mixers.names import KINDS
from models.vit_config import ViTConfig
from models.vit_hybrid_config import ViTHybridConfig

SIZES: dict[str, Any] = {"depth": 4, "d_model": 12, "n_heads": 3, "dropout": 0.0}
VIT = ViTConfig(**SIZES, max_length=8, patch_size=2, channels=1, n_classes=3)
SCALED = ViTConfig(
    **SIZES, max_length=8, patch_size=2, channels=1, n_classes=3, layer_scale=True, head_dim=6
)
AVIT = AViTConfig(**SIZES, max_length=8, patch_size=2, channels=1, n_classes=3, keep_ratio=0.6)
BERT = BertConfig(**SIZES, max_length=9, vocab_size=20, n_classes=3)
TEACHERS = {"vit": VIT, "scaled": SCALED, "avit": AVIT, "bert": BERT}
NOTHING_IN_1: dict[str, Any] = {"replace": (1,), "mixer": "identity"}
MIXERS = [kind for kind in KINDS if kind != "attention"]


def images(n: int = 5) -> Tensor:
    return torch.randn(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def inputs_of(config: ModelConfig) -> tuple[Any, ...]:
    if config.inputs == "image":
        return (images(),)
    ids = torch.randint(20, (5, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(7) >= torch.tensor([7, 5, 3, 7, 1])[:, None]
    return ids, mask, None


def teacher_of(config: ModelConfig) -> Any:
    teacher: Any = build_model(config, 0)
    if isinstance(config, AViTConfig):
        teacher.calibrate([images(20)])
    return teacher.eval()


def hybrid_config(teacher: ModelConfig, **declared: Any) -> Any:
    if teacher.inputs == "text":
        kind: Any = BertHybridConfig
        given = {"vocab_size": 20}
    else:
        kind, given = ViTHybridConfig, {"channels": 1}
    config = kind(**declared, **given, n_classes=3, max_length=teacher.max_length)
    return config.resolve(TrainedSummary(params=asdict(teacher), k_histogram=None, mean_macs=1.0))


def hybrid_of(teacher: Any, **declared: Any) -> Any:
    student: Any = build_model(hybrid_config(teacher.config, **declared), 1)
    student.load_teacher(teacher.state_dict())
    return student.eval()


@pytest.mark.parametrize("name", TEACHERS)
@torch.no_grad()
def test_replacing_nothing_is_the_teacher_bit_for_bit(name: str) -> None:
    teacher = teacher_of(TEACHERS[name])
    student = hybrid_of(teacher)
    inputs = inputs_of(teacher.config)
    assert torch.equal(student(*inputs).logits, teacher(*inputs).logits)
    assert student.new_parameters() == []
    assert student.config.macs(8) == teacher.config.macs(8)
    student.train()
    teacher.train()
    assert torch.equal(student(*inputs).logits, teacher(*inputs).logits)


@pytest.mark.parametrize("name", ["vit", "scaled", "avit", "bert"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_all_but_the_new_modules_is_the_teachers(name: str, mixer: str) -> None:
    if name == "scaled" and KINDS[mixer].keeps_width:
        pytest.skip("its heads are wider than the model")
    teacher = teacher_of(TEACHERS[name])
    student = hybrid_of(teacher, replace=(1, 3), mixer=mixer)
    given = teacher.state_dict()
    new = {id(parameter) for parameter in student.new_parameters()}
    assert bool(new) == KINDS[mixer].trainable
    for key, parameter in student.named_parameters():
        if id(parameter) in new:
            assert any(f"blocks.{i}.att" in key for i in (1, 3))
        else:
            assert torch.equal(parameter, given[key]), key
    outputs = [key for key, _ in student.named_parameters() if "1.att" in key]
    projection = (
        "blocks.1.attention.output.weight" if name == "bert" else "blocks.1.attn.proj.weight"
    )
    assert (projection in outputs) == (mixer != "identity")
    assert student(*inputs_of(teacher.config)).logits.isfinite().all()


def test_all_weights_can_be_trained_even_where_the_teachers_head_alone_was() -> None:
    teacher = build_model(replace(VIT, head_only=True), 0)
    assert {name for name, p in teacher.named_parameters() if p.requires_grad} == {
        "head.weight",
        "head.bias",
    }
    student = hybrid_of(teacher, replace=(1,))
    assert all(parameter.requires_grad for parameter in student.parameters())


@pytest.mark.parametrize("name", ["vit", "avit"])
@torch.no_grad()
def test_identity_is_the_teacher_without_that_sub_layer(name: str) -> None:
    teacher = teacher_of(TEACHERS[name])
    student = hybrid_of(teacher, replace=(2,), mixer="identity")
    teacher.blocks[2].attn.proj.weight.zero_()
    teacher.blocks[2].attn.proj.bias.zero_()
    torch.testing.assert_close(student(images()).logits, teacher(images()).logits)
    assert teacher.n_parameters() - student.n_parameters() == 4 * 12 * 12 + 4 * 12


@torch.no_grad()
def test_recurrences_of_a_halting_student_see_the_kept_tokens_alone() -> None:
    teacher = teacher_of(AVIT)
    student = hybrid_of(teacher, replace=(1, 2), mixer="bilstm")
    assert student.config.halts
    keep = teacher(images()).tokens.keep
    assert not keep[:, 1:].all()
    packed = student(images(), keep=keep)
    student.packed = False
    masked = student(images(), keep=keep)
    assert torch.equal(packed.tokens.keep, keep)
    torch.testing.assert_close(packed.logits, masked.logits, rtol=1e-4, atol=1e-5)
    # the same network on the kept tokens as a sequence of their own
    mixer = student.mixers()[1]
    mixer.capture = True
    student(images(), keep=keep)
    seen: list[Tensor] = []
    mixer.heads, heads = (lambda x, mask=None: seen.append(x) or heads(x, mask)), mixer.heads
    student(images(1), keep=keep[:1])
    alone = heads(seen[0][:, : int(keep[0, 1].sum())])
    torch.testing.assert_close(mixer.captured[0][keep[0, 1]], alone[0], rtol=1e-4, atol=1e-6)
    assert mixer.captured[0][~keep[0, 1]].abs().sum() == 0


@torch.no_grad()
def test_padding_changes_nothing_in_a_text_hybrid() -> None:
    student = hybrid_of(teacher_of(BERT), replace=(0, 2), mixer="bilstm")
    ids, mask, _ = inputs_of(BERT)
    together = student(ids, mask).logits
    for row in range(len(ids)):
        length = int((~mask[row]).sum())
        alone = student(ids[row : row + 1, :length], mask[row : row + 1, :length]).logits
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        ((0, 4), "no layer 4 among 4; they are 0 to 3"),
        ((1, 1), "layer 1 is named twice"),
        ((-1,), "no layer -1"),
        ((2, 0), r"layer 0 stands after 2; give them in ascending order: \[0, 2\]"),
    ],
)
@pytest.mark.parametrize("teacher", [VIT, BERT])
def test_an_index_that_cannot_be_is_named(
    teacher: ModelConfig, replace: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        hybrid_config(teacher, replace=replace)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"mixer": "bilstmm"}, "did you mean 'bilstm'"),
        ({"mixer": "BiLSTM"}, "did you mean 'bilstm'"),
        ({"mixer": "conv", "bidirectional": False}, "unknown option of the mixer 'conv'"),
        ({"mixer": "conv", "kernel_size": 4}, "must be odd"),
        ({"samples": -1}, "samples must not be negative"),
        ({"stage1_share": 1.5}, r"must lie in \[0, 1\]"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"stage2_lr": 0.0}, "stage2_lr must be positive"),
        ({"logit_weight": -1.0}, "logit_weight must not be negative"),
        ({"hidden_weight": 0.0, "task_weight": 0.0}, "would learn nothing"),
        ({"hidden_loss": "l1"}, "'mse' or 'cosine'"),
        ({"d_model": 24}, "d_model = 24, but the teacher has 12"),
        ({"patch_size": 8}, "patch_size = 8, but the teacher has 2"),
    ],
)
def test_what_cannot_be_declared_is_one_clear_error(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hybrid_config(VIT, **declared)


def test_sizes_that_a_mixer_cannot_have_are_found_before_any_training() -> None:
    with pytest.raises(ValueError, match="18 must be d_model = 12"):
        hybrid_config(SCALED, replace=(1,), mixer="mean")


def test_a_teacher_must_be_of_the_right_kind() -> None:
    summary = TrainedSummary(params=asdict(BERT), k_histogram=None, mean_macs=1.0)
    with pytest.raises(ValueError, match="the teacher is no such model: it has vocab_size"):
        ViTHybridConfig(n_classes=3).resolve(summary)
    hybrid = TrainedSummary(params=asdict(hybrid_config(VIT)), k_histogram=None, mean_macs=1.0)
    with pytest.raises(ValueError, match="a hybrid itself"):
        ViTHybridConfig(n_classes=3).resolve(hybrid)


@pytest.mark.parametrize("name", ["vit", "avit", "bert"])
def test_weights_of_another_shape_name_the_first_tensor(name: str) -> None:
    teacher = teacher_of(TEACHERS[name])
    student = hybrid_of(teacher, replace=(1,))
    state = teacher.state_dict()
    key = next(key for key in state if key.endswith("head.weight"))
    state[key] = torch.zeros(3, 14)
    before = {k: v.clone() for k, v in student.state_dict().items()}
    with pytest.raises(ValueError, match=r"head\.weight is \(3, 14\).*needs \(3, 12\)"):
        student.load_teacher(state)
    assert all(torch.equal(v, before[k]) for k, v in student.state_dict().items())
    del state[key]
    with pytest.raises(ValueError, match=r"no head\.weight"):
        student.load_teacher(state)


@pytest.mark.parametrize("config", [ViTHybridConfig, BertHybridConfig])
def test_the_teachers_matters_cannot_be_declared(config: type[ModelConfig]) -> None:
    names = set(config.declarable())
    assert {"replace", "mixer", "samples", "depth"} <= names
    assert not names & {"keep_ratio", "gate_scale", "finetune_epochs", "halts", "pretrained"}


@pytest.mark.parametrize("teacher", [VIT, BERT])
@pytest.mark.parametrize("mixer", ["bilstm", "conv", "mean", "identity"])
def test_a_mixers_work_stands_in_attentions_place(teacher: ModelConfig, mixer: str) -> None:
    tokens = 17 if teacher is VIT else 8
    whole = hybrid_config(teacher).macs(8)
    two = hybrid_config(teacher, replace=(1, 2), mixer=mixer).macs(8)
    own = costs.cost(mixer, tokens, 12, 3, 4)
    assert two.attention == pytest.approx(whole.attention / 2 + 2 * own.macs)
    rest = whole.total - whole.attention
    assert two.total - two.attention == pytest.approx(rest)
    if mixer == "identity":
        assert two.elementwise < whole.elementwise
        assert own.macs == 0


def test_without_attention_nothing_is_normed_and_added_either() -> None:
    whole, without = (hybrid_config(VIT, **changed).macs(8) for changed in ({}, NOTHING_IN_1))
    tokens, softmax = 17, 5 * 3 * 17 * 17
    norm_biases_and_sum = tokens * (7 * 12 + 3 * 12 + 12 + 12)
    assert whole.elementwise - without.elementwise == softmax + norm_biases_and_sum


def test_fresh_weights_need_no_teacher() -> None:
    config = ViTHybridConfig(
        **SIZES, max_length=8, patch_size=2, channels=1, replace=(0, 3), mixer="conv"
    )
    model: nn.Module = build_model(config, 0)
    assert model(images()).logits.shape == (5, 2)
    with pytest.raises(ValueError, match="no layer 9 among 4"):
        build_model(ViTHybridConfig(**SIZES, max_length=8, patch_size=2, replace=(9,)), 0)
