"""Deleting attention: against weights set to zero, and drops that can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.catalog import METERS
from benchmarks.data.batches import collate
from benchmarks.data.images import ImageSplit
from benchmarks.data.load import EncodedSplit
from benchmarks.errors import UsageError
from benchmarks.meters.deletion import deleted, deletions, measure
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.planning.points import Point
from benchmarks.statistics.intervals import paired_adjusted_wald
from benchmarks.training.evaluate import PREDICT_SEED
from models.avit import AViT
from models.avit_config import AViTConfig
from models.bert import Bert
from models.bert_config import BertConfig
from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.config import VisionConfig
from models.dense import Dense
from models.dense_config import DenseConfig
from models.interface import Classifier, ClassifierOutput
from models.mixers.build import make_mixer
from models.mixers.interface import TokenMixer
from models.vit import ViT
from models.vit_config import ViTConfig

if TYPE_CHECKING:
    from benchmarks.data.batches import Split

VISION: dict[str, Any] = {
    "depth": 4, "d_model": 12, "n_heads": 2, "n_classes": 3, "max_length": 16, "channels": 1,
}  # fmt: skip
TEXT: dict[str, Any] = {
    "depth": 2, "d_model": 12, "n_heads": 2, "n_classes": 3, "max_length": 12, "vocab_size": 40,
}  # fmt: skip


def images(n: int = 12) -> ImageSplit:
    """Images of two classes; the first pixel says which."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n, 1, 16, 16), dtype=np.uint8)
    labels = np.arange(n, dtype=np.int64) % 2
    pixels[:, 0, 0, 0] = labels * 255
    one = np.ones(1, np.float32)
    return ImageSplit("validation", np.arange(n, dtype=np.int64), pixels, labels, 0 * one, one)


def texts() -> EncodedSplit:
    rng = np.random.default_rng(0)
    lengths = (3, 12, 1, 7, 5)
    return EncodedSplit(
        name="validation",
        row_ids=np.arange(5, dtype=np.int64),
        tokens=rng.integers(4, 40, sum(lengths)).astype(np.int32),
        segments=None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=rng.integers(0, 3, 5),
    )


def subject(model: Any, split: Split) -> Subject:
    data = SimpleNamespace(
        card=SimpleNamespace(run_name="made-up", source=None),
        validation=split,
        hash="abc",
        partial=False,
        note="",
    )
    return Subject(Point("any", {}, "made-up", 16), model.eval(), cast("Any", data), None)


def value(found: Measurement, name: str, **context: Any) -> Any:
    (one,) = [v for v in found.values if v.name == name and v.context == context]
    return one


class Adds(TokenMixer):
    """Adds to the first token's two channels what its one weight says of the input."""

    proj: nn.Linear

    def __init__(self, weight: float, layer: int) -> None:
        super().__init__()
        self.proj = nn.Linear(2, 2, bias=False)
        nn.init.eye_(self.proj.weight)
        self.weight, self.layer = weight, layer

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        del key_padding_mask
        sign = 2 * x[:, :1, :1] - 1
        return self.weight * torch.cat([-sign, sign], 2)


class Voting(Classifier):
    """Each layer votes for the right class with its own weight; the residual is for class 0."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.config = VisionConfig(**{**VISION, "depth": len(weights), "n_classes": 2})
        self.layers = nn.ModuleList(Adds(weight, i) for i, weight in enumerate(weights))

    def mixers(self) -> list[nn.Module]:
        return list(self.layers)

    def forward(self, pixel_values: Tensor) -> ClassifierOutput:
        truth = pixel_values[:, 0, 0, 0].view(-1, 1, 1)
        votes = sum(layer(truth) for layer in self.layers)
        return ClassifierOutput(votes[:, 0] + torch.tensor([1.0, 0.0]))


def test_drops_are_those_that_can_be_counted() -> None:
    # without layer 1 the votes are 0.4 each way, against a lead of 1: all of class 1 is lost
    found = measure(subject(Voting(0.3, 0.3, 0.1, 0.0), images()), {})
    assert value(found, "validation_accuracy").value == 1.0
    for layer, drop in enumerate((0.5, 0.5, 0.0, 0.0)):
        one = value(found, "accuracy_drop", layer=layer)
        assert one.value == drop
        assert one.low < drop < one.high
        assert (one.method, one.n) == ("paired_adjusted_wald", 12)
        assert value(found, "deleted_accuracy", layer=layer).value == 1 - drop
        assert value(found, "informative", layer=layer).value == (drop > 0)
    half = {"group": "last half", "layers": "2-3"}
    assert value(found, "accuracy_drop", **half).value == 0.0
    assert value(found, "informative", **half).value == 0
    assert value(found, "accuracy_drop", group="all", layers="0-3").value == 0.5
    assert found.data is not None
    assert (found.data.split, found.data.n) == ("validation", 12)


def test_the_margin_decides_and_what_it_leaves_open_is_named() -> None:
    model = subject(Voting(0.3, 0.3, 0.1, 0.0), images())
    assert measure(model, {}).info == {
        "margin": 0.01,
        "undecided": [{"layer": 2}, {"layer": 3}, {"group": "last half", "layers": "2-3"}],
        "without_mixing": [],
    }
    strict = measure(model, {"margin": 0.6})
    assert {v.value for v in strict.values if v.name == "informative"} == {0}
    # whoever loses exactly the margin is informative
    exact = measure(model, {"margin": 0.5})
    assert value(exact, "informative", layer=0).value == 1


def test_what_clearly_loses_more_or_less_than_the_margin_is_not_undecided() -> None:
    found = measure(subject(Voting(0.3, 0.3, 0.1, 0.0), images(1200)), {})
    clear = {d: value(found, "accuracy_drop", layer=layer) for layer, d in ((0, 0.5), (3, 0.0))}
    assert clear[0.5].low > 0.01 > clear[0.0].high
    assert found.info["undecided"] == []


def test_every_pass_draws_by_the_seed_of_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seeds = Voting(0.3, 0.3), []
    monkeypatch.setattr(model, "reseed", seeds.append)
    measured = subject(model, images())
    measure(replace(measured, point=replace(measured.point, seed=5)), {})
    # as it is, each layer, the two quarters and the half of one layer left out, all
    assert seeds == [PREDICT_SEED + 5] * 4


def test_the_last_half_of_an_odd_depth_has_the_layer_in_the_middle() -> None:
    found = {str(d.context.get("group")): d.layers for d in deletions([True] * 5)}
    assert found["last half"] == (2, 3, 4)
    assert found["quarter 1"] == (0, 1)
    assert "quarter 2" not in found, "it is layer 2 alone"


@pytest.mark.parametrize(
    "make",
    [
        lambda: ViT(ViTConfig(**VISION, layer_scale=True)),
        lambda: AViT(AViTConfig(**VISION, gate_scale=3.0)),
        lambda: AViT(AViTConfig(**VISION, gate_scale=3.0, mode="avit2022")),
    ],
    ids=["vit", "avit", "avit2022"],
)
def test_a_deleted_layer_is_one_whose_output_projection_is_zero(make: Callable[[], Any]) -> None:
    torch.manual_seed(4)
    model = make()
    pixels = cast("Any", collate(images(), range(12))).pixel_values
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
        model.eval()
        if isinstance(model, AViT):
            model.gate_center.fill_(2.0)
            assert cast("Any", model(pixels).tokens).keep[:, -1].float().mean() < 0.9
        whole = model(pixels).logits
        with deleted([model.mixers()[1]]):
            without = model(pixels).logits
        assert torch.equal(model(pixels).logits, whole)
        identity = make_mixer("identity", 12, 2, 6)
        model.blocks[1].attn, attention = identity, model.blocks[1].attn
        replaced = model(pixels).logits
        model.blocks[1].attn = attention
        for parameter in model.mixers()[1].proj.parameters():
            parameter.zero_()
        zeroed = model(pixels).logits
    assert not torch.allclose(without, whole, atol=1e-3)
    assert torch.allclose(without, zeroed, atol=1e-6)
    assert torch.allclose(without, replaced, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        Dense(DenseConfig(**TEXT)),
        Bert(BertConfig(**TEXT)),
        BudgetFormer(BudgetFormerConfig(**TEXT, fixed_k=1)),
    ],
    ids=["dense", "bert", "budgetformer"],
)
@torch.no_grad()
def test_text_encoders_lose_their_attention_too(model: Any) -> None:
    model.set_progress(1.0)
    model.eval()
    batch = collate(texts(), range(5))
    with deleted([block.attention for block in model.blocks]):
        without = model(*batch.inputs).logits
    for block in model.blocks:
        for parameter in block.attention.output.parameters():
            parameter.zero_()
    assert torch.allclose(without, model(*batch.inputs).logits, atol=1e-6)
    found = measure(subject(model, texts()), {})
    # its attention gives zeros already
    assert {v.value for v in found.values if v.name == "accuracy_drop"} == {0.0}


def test_hooks_go_even_if_the_model_fails() -> None:
    layer = Adds(1.0, 0)
    with pytest.raises(RuntimeError), deleted([layer]):
        raise RuntimeError
    assert layer(torch.ones(1, 1, 1)).abs().sum() > 0


def named(depth: int) -> dict[Any, tuple[int, ...]]:
    return {
        d.context.get("group", d.context.get("layer")): d.layers for d in deletions([True] * depth)
    }


def test_groups_are_quarters_the_last_half_and_all() -> None:
    assert named(8) == {
        **{i: (i,) for i in range(8)},
        "quarter 1": (0, 1),
        "quarter 2": (2, 3),
        "quarter 3": (4, 5),
        "quarter 4": (6, 7),
        "last half": (4, 5, 6, 7),
        "all": tuple(range(8)),
    }
    assert named(12)["quarter 4"] == (9, 10, 11)
    assert named(2) == {0: (0,), 1: (1,), "all": (0, 1)}
    assert named(1) == {0: (0,)}
    contexts = [dict(d.context) for d in deletions([True] * 8) if "group" in d.context]
    assert contexts[0] == {"group": "quarter 1", "layers": "0-1"}


def test_layers_that_mix_nothing_are_not_deleted() -> None:
    model = ViT(ViTConfig(**VISION))
    cast("Any", model.blocks)[1].attn = make_mixer("identity", 12, 2, 6)
    found = measure(subject(model, images()), {})
    assert found.info["without_mixing"] == [1]
    assert {v.context["layer"] for v in found.values if "layer" in v.context} == {0, 2, 3}
    assert [d.layers for d in deletions([False, False, True, True])] == [
        (2,), (3,), (2, 3), (2, 3),
    ]  # fmt: skip


def test_what_cannot_be_measured_says_why() -> None:
    class Other(nn.Module):
        config = ViTConfig(**VISION)

    with pytest.raises(UsageError, match="meter 'deletion': Other offers neither mixers"):
        measure(subject(Other(), images()), {})
    with pytest.raises(UsageError, match="did you mean 'margin'"):
        measure(subject(Voting(1.0), images()), {"margins": 0.1})


@pytest.mark.parametrize(
    ("meter", "option", "good", "bad"),
    [
        ("deletion", "margin", (0, 0.01, 1), (-0.1, 1.1, True, "1 %")),
        ("deletion", "n_inputs", (1, 2000), (0, 1.5)),
        ("sparsity", "n_inputs", (256,), (-1, "all")),
    ],
)
def test_options_are_checked(
    meter: str, option: str, good: tuple[Any, ...], bad: tuple[Any, ...]
) -> None:
    spec = METERS.get(meter)
    assert spec.needs_training
    assert all(spec.options[option].takes(value) for value in good)
    assert not any(spec.options[option].takes(value) for value in bad)


def test_the_interval_covers_where_the_two_hardly_ever_disagree() -> None:
    # exact, over all that can be seen: one model is right where the other is not in 2 of 1000
    n, share = 300, 0.002
    covered = 0.0
    for wins in range(12):
        chance = float(np.exp(_log_binomial(n, wins) + wins * np.log(share)))
        chance *= (1 - share) ** (n - wins)
        right = np.arange(n) < wins
        interval = paired_adjusted_wald(np.ones(n, bool), ~right)
        covered += chance * (interval.low <= share <= interval.high)
    assert covered > 0.99


def _log_binomial(n: int, k: int) -> float:
    from math import lgamma

    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
