"""MACs of what can take attention's place: both counters against hand counts and formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from tiny_teachers import AVIT, image_data, student_of, teacher_of
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarks.data.batches import ImageBatch, collate
from benchmarks.data.images import ImageSplit
from benchmarks.errors import MeterError
from benchmarks.meters.flop_handlers import count_by_dispatch, count_with_fvcore, executed_counter
from benchmarks.meters.flops import check_formula, measure
from benchmarks.meters.interface import Subject
from benchmarks.planning.points import Point
from benchmarks.training.evaluate import predict
from models.avit import AViT, _of_kept
from models.avit_config import AViTConfig
from models.interface import Classifier, ClassifierOutput
from models.mixers.build import make_mixer
from models.mixers.costs import cost
from models.mixers.names import KINDS
from models.vit import ViT
from models.vit_config import ViTConfig
from models.vit_hybrid import vit_hybrid
from models.vit_hybrid_config import ViTHybridConfig

if TYPE_CHECKING:
    from collections.abc import Callable

VISION: dict[str, Any] = {
    "depth": 2, "d_model": 12, "n_heads": 2, "n_classes": 3, "max_length": 16, "channels": 1,
}  # fmt: skip
MIXERS = [
    (kind, {} if both else {"bidirectional": False})
    for kind, facts in KINDS.items()
    for both in ((True, False) if "bidirectional" in facts.options else (True,))
]


class Runs(Classifier):
    """Gives what a function makes of a module and the input."""

    def __init__(self, module: nn.Module, work: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.module, self.work = module, work

    def forward(self, x: Tensor) -> ClassifierOutput:
        return ClassifierOutput(self.work(self.module, x))


def batch_of(x: Tensor) -> ImageBatch:
    nothing = torch.zeros(len(x), dtype=torch.int64)
    return ImageBatch(x, nothing, nothing)


def counts(model: Classifier, x: Tensor) -> dict[str, float]:
    batch = batch_of(x)
    with executed_counter() as counter, torch.no_grad():
        model.eval()(x)
    return {
        "fvcore": count_with_fvcore(model, batch).macs,
        "dispatch": count_by_dispatch(model, batch).macs,
        "executed": counter.get_total_flops() / 2,
    }


def first(module: Any, x: Tensor) -> Tensor:
    return cast("Tensor", module(x)[0])


def packed(module: Any, x: Tensor) -> Tensor:
    packed_in = pack_padded_sequence(x, torch.tensor([7, 3]), batch_first=True)
    return cast("Tensor", module(packed_in)[0].data)


def along_tokens(module: Any, x: Tensor) -> Tensor:
    return cast("Tensor", module(x.transpose(1, 2)))


def in_place(_: Any, x: Tensor) -> Tensor:
    return torch.zeros(2, 7, 7).baddbmm_(x, x.transpose(1, 2))


def einsum(equation: str) -> Callable[[Any, Tensor], Tensor]:
    return lambda _, x: torch.einsum(equation, x, x)


@pytest.mark.parametrize(
    ("module", "work", "macs"),
    [
        (nn.LSTM(8, 5, batch_first=True), first, 14 * 4 * 5 * 13),
        (nn.LSTM(8, 5, bidirectional=True), first, 2 * 14 * 4 * 5 * 13),
        (nn.LSTM(8, 5, 2), first, 14 * 4 * 5 * (13 + 10)),
        (nn.GRU(8, 5, batch_first=True, bidirectional=True), first, 2 * 14 * 3 * 5 * 13),
        (nn.LSTM(8, 5, batch_first=True), packed, 10 * 4 * 5 * 13),
        (nn.GRU(8, 5, batch_first=True), packed, 10 * 3 * 5 * 13),
        (nn.Conv1d(8, 8, 3, padding=1, groups=8), along_tokens, 14 * 8 * 3),
        (nn.Conv1d(8, 4, 1, groups=2), along_tokens, 14 * 4 * 4),
        (nn.Identity(), in_place, 2 * 7 * 7 * 8),
        (nn.Identity(), einsum("btd,bsd->bts"), 2 * 7 * 7 * 8),
        (nn.Identity(), einsum("btd,bte->bde"), 2 * 7 * 8 * 8),
        # nothing is summed over: elementwise work
        (nn.Identity(), einsum("btd,btd->btd"), 0),
    ],
    ids=[
        "lstm", "both-ways", "two-layers", "gru", "packed-lstm", "packed-gru",
        "depthwise", "grouped", "in-place", "einsum", "einsum-tokens", "einsum-elementwise",
    ],
)  # fmt: skip
def test_counters_agree_with_a_hand_count(
    module: nn.Module, work: Callable[[Any, Tensor], Tensor], macs: int
) -> None:
    found = counts(Runs(module, work), torch.randn(2, 7, 8))
    assert found == {"fvcore": macs, "dispatch": macs, "executed": macs}


def test_a_product_in_place_that_nobody_counts_is_an_error() -> None:
    model = Runs(nn.Identity(), lambda _, x: torch.zeros(7, 7).addmm_(x[0], x[1].T))
    assert count_by_dispatch(model.eval(), batch_of(torch.randn(2, 7, 8))).macs == 7 * 7 * 8
    with pytest.raises(MeterError, match="fvcore cannot count addmm_"):
        count_with_fvcore(model, batch_of(torch.randn(2, 7, 8)))


def test_an_einsum_that_cannot_be_told_is_refused() -> None:
    model = Runs(nn.Identity(), lambda _, x: torch.einsum("btd,bsd,bte->bse", x, x, x))
    with pytest.raises(MeterError, match=r"einsum 'btd,bsd,bte->bse' cannot be counted"):
        count_with_fvcore(model, batch_of(torch.randn(2, 7, 8)))


@pytest.mark.parametrize(("kind", "options"), MIXERS)
@pytest.mark.parametrize("tokens", [1, 17])
def test_a_mixers_formula_is_what_both_counters_find(
    kind: str, options: dict[str, Any], tokens: int
) -> None:
    mixer = make_mixer(kind, 24, 3, 8, **options)
    formula = cost(kind, tokens, 24, 3, 8, **options).macs
    # Mamba's plain twin is the scan, whose work is another
    for plain in (False, True) if kind != "bimamba" else (False,):
        mixer.plain = plain
        found = counts(Runs(mixer, lambda module, x: module(x)), torch.randn(1, tokens, 24))
        assert found == pytest.approx(dict.fromkeys(found, formula), rel=0.01)


@pytest.mark.parametrize("tokens", [64, 65, 130])
def test_a_scan_in_chunks_is_counted_as_stated(tokens: int) -> None:
    mixer = make_mixer("bimamba", 24, 3, 8, state=16)
    formula = cost("bimamba", tokens, 24, 3, 8, state=16).macs
    found = counts(Runs(mixer, lambda module, x: module(x)), torch.randn(1, tokens, 24))
    assert found == pytest.approx(dict.fromkeys(found, formula), rel=0.01)


def images(n: int = 6) -> ImageSplit:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n, 1, 16, 16), dtype=np.uint8)
    one = np.ones(1, np.float32)
    return ImageSplit("test", np.arange(n), pixels, np.zeros(n, np.int64), one, one)


def largest_difference(model: Any) -> float:
    work = predict(model.eval(), images(), batch_size=4).work
    check = check_formula(model, images(), work)
    # images of one size, none of whose tokens halt, all cost the same
    assert len(check["inputs"]) == 1 or work is not None
    return max(check["largest_difference"].values())


def test_a_vision_transformers_formula_is_exact() -> None:
    assert largest_difference(ViT(ViTConfig(**VISION, layer_scale=True))) == 0


@pytest.mark.parametrize("mode", ["s2s", "avit2022"])
def test_halted_tokens_are_neither_stated_nor_computed(mode: Any) -> None:
    torch.manual_seed(0)
    model = AViT(AViTConfig(**{**VISION, "depth": 4}, mode=mode, keep_ratio=0.5, gate_scale=5.0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    model.calibrate([cast("ImageBatch", collate(images(), range(6))).pixel_values])
    kept = predict(model.eval(), images()).kept
    assert kept is not None
    assert kept.mean() < 14
    assert largest_difference(model) < 0.01
    model.packed = False  # masks save nothing, and so may not claim it
    with pytest.raises(MeterError, match="apart"):
        largest_difference(model)


@pytest.mark.parametrize(("kind", "options"), MIXERS)
def test_a_hybrids_formula_is_what_both_counters_find(kind: str, options: dict[str, Any]) -> None:
    config = ViTHybridConfig(**VISION, replace=(1,), mixer=kind, **options)
    assert largest_difference(vit_hybrid(config)) < 0.01


@pytest.mark.parametrize("kind", ["bilstm", "bimamba"])
def test_a_hybrid_that_halts_runs_in_batches_what_its_formula_says_and_padding(kind: str) -> None:
    student = student_of(teacher_of(AVIT), replace=(1, 2), mixer=kind).eval()
    point = Point("vit-hybrid", {}, "squares", 8, recipe=None)
    found = measure(Subject(point, student, image_data(), None), {"batch_size": 8})
    assert len(found.info["check"]["inputs"]) > 1
    assert max(found.info["check"]["largest_difference"].values()) < 0.01
    mean = {v.name: v.value for v in found.values if v.context["stat"] == "mean"}
    assert mean["macs"] < mean["macs_executed"] < student.config.macs(8).total


@pytest.mark.parametrize(("kind", "options"), MIXERS)
def test_where_no_token_is_left_nothing_is_stated_and_nothing_runs(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = cost(kind, 0, 24, 3, 8, **options)
    assert (stated.macs, stated.elementwise) == (0, 0)
    mixer = make_mixer(kind, 24, 3, 8, **options)
    if mixer.proj is None:
        return  # identity: it is not asked
    monkeypatch.setattr(mixer, "heads", None)
    rows = torch.randn(10, 24)
    assert torch.equal(_of_kept(mixer, rows, torch.zeros(2, 5, dtype=torch.bool)), 0 * rows)
