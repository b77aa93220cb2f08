"""The sparsity meter against weights computed by hand from the models' own layers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.data.batches import collate
from benchmarks.data.images import ImageSplit
from benchmarks.data.load import EncodedSplit
from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.kept_tokens import agreement, keep_ratios, shown
from benchmarks.meters.sparsity import measure, read
from benchmarks.planning.points import Point
from benchmarks.sparsity import maps
from benchmarks.sparsity.maps import measured
from benchmarks.sparsity.measures import MEASURES
from models.avit import AViT
from models.avit_config import AViTConfig
from models.bert import Bert
from models.bert_config import BertConfig
from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.dense import Dense
from models.dense_config import DenseConfig
from models.mixers.build import make_mixer
from models.no_attention import NoAttention
from models.no_attention_config import NoAttentionConfig
from models.vit import ViT
from models.vit_config import ViTConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.data.batches import Split
    from models.interface import Classifier

VISION: dict[str, Any] = {
    "depth": 3, "d_model": 12, "n_heads": 2, "n_classes": 3, "max_length": 16, "channels": 1,
}  # fmt: skip
TEXT: dict[str, Any] = {
    "depth": 2, "d_model": 12, "n_heads": 2, "n_classes": 3, "max_length": 12, "vocab_size": 40,
}  # fmt: skip


def images(n: int = 10) -> ImageSplit:
    rng = np.random.default_rng(0)
    return ImageSplit(
        name="validation",
        row_ids=np.arange(n, dtype=np.int64) * 7,
        pixels=rng.integers(0, 256, (n, 1, 16, 16), dtype=np.uint8),
        labels=rng.integers(0, 3, n),
        mean=np.full(1, 0.5, np.float32),
        std=np.full(1, 0.25, np.float32),
    )


def texts(lengths: tuple[int, ...] = (3, 12, 1, 7, 0, 5)) -> EncodedSplit:
    rng = np.random.default_rng(0)
    return EncodedSplit(
        name="validation",
        row_ids=np.arange(len(lengths), dtype=np.int64),
        tokens=rng.integers(4, 40, sum(lengths)).astype(np.int32),
        segments=None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=rng.integers(0, 3, len(lengths)),
    )


def subject(model: Classifier, split: Split, base: Callable[[], Subject] | None = None) -> Subject:
    data = SimpleNamespace(
        card=SimpleNamespace(run_name="made-up", source=None),
        validation=split,
        hash="abc",
        partial=False,
        note="",
    )
    return Subject(Point("any", {}, "made-up", 16), model.eval(), cast("Any", data), None, base)


def sharpened(model: Any) -> Any:
    """Fresh weights attend evenly; these have something to measure."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.add_(torch.randn(parameter.shape) * (0.6 if "qkv" in name else 0.1))
    return model.eval()


def value(found: Measurement, name: str, **context: Any) -> float:
    (one,) = [v.value for v in found.values if v.name == name and v.context == context]
    return one


def vit() -> ViT:
    torch.manual_seed(1)
    return cast("ViT", sharpened(ViT(ViTConfig(**VISION))))


def avit(mode: str = "s2s", keep_ratio: float = 0.6) -> AViT:
    torch.manual_seed(1)
    config = AViTConfig(**VISION, mode=cast("Any", mode), keep_ratio=keep_ratio, gate_scale=3.0)
    model = cast("AViT", sharpened(AViT(config)))
    model.calibrate([cast("Any", collate(images(), range(10))).pixel_values])
    return model


@torch.no_grad()
def weights_of(model: ViT, split: ImageSplit) -> list[Tensor]:
    """Each layer's (inputs, heads, queries, keys); they give what the layer's fused attention gives."""
    x = model._embed(cast("Any", collate(split, range(len(split)))).pixel_values)
    found = []
    for block in cast("Any", model.blocks):
        normed = block.norm1(x)
        q, k, v = (
            nn.functional.linear(normed, w, b).unflatten(2, (2, 6)).transpose(1, 2)
            for w, b in zip(
                block.attn.qkv.weight.chunk(3), block.attn.qkv.bias.chunk(3), strict=True
            )
        )
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k).div(6**0.5).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        assert torch.allclose(mixed, block.attn.heads(normed), atol=1e-5)
        found.append(weights)
        x = block(x)
    return found


def test_values_are_means_of_the_layers_own_weights() -> None:
    model = vit()
    found = measure(subject(model, images()), {"batch_size": 3})
    n_keys = torch.tensor(17)
    for name, function in MEASURES.items():
        means = []
        for layer, weights in enumerate(weights_of(model, images())):
            rows = function(weights, n_keys)
            means.append(float(rows.mean()))
            for queries, expected in (("all", rows.mean(2)), ("class", rows[:, :, 0])):
                context = {"measure": name, "queries": queries, "layer": layer}
                assert value(found, "sparsity", **context) == pytest.approx(
                    float(expected.mean()), abs=1e-5
                )
                assert found.series[f"{name}_{queries}"][layer] == pytest.approx(
                    expected.mean(0).tolist(), abs=1e-5
                )
                error = expected.mean(1).std() / 10**0.5
                assert found.series[f"{name}_{queries}_se"][layer] == pytest.approx(
                    float(error), abs=1e-5
                )
        whole = value(found, "sparsity", measure=name, queries="all")
        assert whole == pytest.approx(np.mean(means), abs=1e-5)
        assert 0.01 < whole < 0.99
    assert found.data is not None
    assert (found.data.split, found.data.n) == ("validation", 10)
    assert found.warnings == []


def test_fewer_inputs_are_a_fixed_sample_and_said() -> None:
    found = measure(subject(vit(), images()), {"n_inputs": 4})
    assert found.data is not None
    assert found.data.n == 4
    assert found.data.note == "4 of 10 validation inputs, a fixed sample"
    whole = measure(subject(vit(), at_most(images(), 4)), {})
    assert found.values == whole.values


@pytest.mark.parametrize(
    "model", [Dense(DenseConfig(**TEXT)), Bert(BertConfig(**TEXT))], ids=["dense", "bert"]
)
def test_padding_changes_nothing_and_empty_texts_are_left_out(model: Any) -> None:
    sharpened(model)
    padded = measure(subject(model, texts()), {"batch_size": 6})
    alone = measure(subject(model, texts()), {"batch_size": 1})
    assert padded.data is not None
    assert padded.data.n == 5
    # the text of one token has nothing to choose between
    per_layer = [v for v in padded.values if "layer" in v.context]
    assert {v.n for v in per_layer} == {4}
    for ours, theirs in zip(padded.values, alone.values, strict=True):
        assert ours.context == theirs.context
        assert ours.value == pytest.approx(theirs.value, abs=1e-5)


@torch.no_grad()
def test_a_text_encoders_weights_are_those_of_its_fused_attention() -> None:
    layer = cast("Any", sharpened(Dense(DenseConfig(**TEXT)))).blocks[0].attention
    x = torch.randn(2, 5, 12)
    real = torch.ones(2, 5, dtype=torch.bool)
    q, k = maps.queries_and_keys(layer, layer.qkv(x), real)
    values = layer.qkv(x).view(2, 5, 2, 3, 6)[:, :, :, 2].transpose(1, 2)
    mixed = (q @ k.transpose(2, 3) / 6**0.5).softmax(-1) @ values
    assert torch.allclose(mixed.transpose(1, 2), layer.heads(x, None, plain=False), atol=1e-5)


def test_only_a_model_that_classifies_by_a_token_has_class_queries() -> None:
    kinds = {
        pooling: {
            v.context["queries"]
            for v in measure(subject(Bert(BertConfig(**TEXT, pooling=pooling)), texts()), {}).values
        }
        for pooling in ("mean", "cls")
    }
    assert kinds == {"mean": {"all"}, "cls": {"all", "class"}}


def test_pieces_of_a_batch_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 2, 7, 4).unbind(0)
    real = torch.arange(7) < torch.tensor([[7], [4], [1]])
    whole = measured(q, k, real)
    monkeypatch.setattr(maps, "MOST_WEIGHTS", 60)
    pieces = measured(q, k, real)
    for name in MEASURES:
        for kind in ("all_queries", "first_query"):
            ours, theirs = getattr(whole, kind)[name], getattr(pieces, kind)[name]
            assert torch.allclose(ours, theirs, equal_nan=True)
            assert ours.isnan().all(1).tolist() == [False, False, True]
    assert torch.equal(whole.first_row, pieces.first_row)


@pytest.mark.parametrize("mode", ["s2s", "avit2022"])
def test_dropped_tokens_are_no_keys_and_packing_changes_nothing(mode: str) -> None:
    model = avit(mode)
    packed = read(model, images(), 10)
    model.packed = False
    masked = read(model, images(), 10)
    keep = packed.keep[0]
    assert np.array_equal(keep, masked.keep[0])
    assert 0 < keep[:, -1].mean() < 0.9
    # images of one batch keep different numbers
    assert len(set(keep[:, -1].sum(1).tolist())) > 1
    for key, (array,) in packed.measures.items():
        np.testing.assert_allclose(array, masked.measures[key][0], atol=2e-5)
    told = np.isfinite(packed.measures["hoyer", "class"][0]).all(axis=2)
    assert np.array_equal(told, keep[:, :, 0] & (keep.sum(2) > 1))
    assert told.all() == (mode == "s2s")


def test_a_model_that_halts_nothing_measures_as_the_dense_one() -> None:
    dense, model = vit(), AViT(AViTConfig(**VISION, keep_ratio=1.0)).eval()
    model.start_from(dense.state_dict())
    model.calibrate([cast("Any", collate(images(), range(10))).pixel_values])
    found = measure(subject(model, images()), {})
    expected = measure(subject(dense, images()), {})
    ours = [v for v in found.values if v.name == "sparsity"]
    for one, other in zip(ours, expected.values, strict=True):
        assert one.context == other.context
        assert one.value == pytest.approx(other.value, abs=1e-5)
    assert {v.value for v in found.values if v.name == "keep_ratio"} == {1.0}
    # all tokens kept: nothing to compare with attention
    assert {v.name for v in found.values} == {"sparsity", "keep_ratio"}


def test_kept_tokens_are_compared_with_the_bases_attention_or_the_models_own() -> None:
    model, dense = avit(), vit()
    with torch.no_grad():
        for parameter in dense.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    own = measure(subject(model, images()), {"batch_size": 4})
    base = subject(dense, images())
    of_base = measure(subject(model, images(), lambda: base), {"batch_size": 4})
    assert own.info["dense_attention"] == "the same weights, no token halted"
    assert of_base.info["dense_attention"] == "the base's"
    keep = read(model, images(), 10).keep[0]
    for found, weights in (
        (own, weights_of(model, images())),
        (of_base, weights_of(dense, images())),
    ):
        rows = torch.stack([w[:, :, 0].mean(1) for w in weights], 1).double().numpy()
        for expected in agreement(keep, rows):
            assert value(found, expected.name, **expected.context) == pytest.approx(expected.value)
    assert value(own, "auprc", layer=2) != value(of_base, "auprc", layer=2)
    assert value(own, "chance", layer=2) == value(of_base, "chance", layer=2)
    assert len(own.series["kept_layers"]) == 8
    first = own.series["kept_layers"][0]
    assert first == {"row_id": 0, "layers": keep[0, :, 1:].sum(0).tolist()}


def test_replaced_layers_have_no_value_and_are_named() -> None:
    model = vit()
    for layer, kind in ((1, "bilstm"), (2, "identity")):
        cast("Any", model.blocks)[layer].attn = make_mixer(kind, 12, 2, 6)
    found = measure(subject(model, images()), {})
    assert {v.context.get("layer") for v in found.values} == {None, 0}
    assert found.info["without_weights"] == {"1": "BiLSTM", "2": "Identity"}
    assert found.warnings == ["no attention weights in layers [1, 2]: no value"]
    assert found.series["hoyer_all"][1:] == [[None, None]] * 2
    assert found.series["hoyer_all_se"][1:] == [None, None]


def test_a_halting_model_without_any_attention_still_has_keep_ratios() -> None:
    model = avit()
    for block in cast("Any", model.blocks):
        block.attn = make_mixer("conv", 12, 2, 6)
    found = measure(subject(model, images()), {})
    assert {v.name for v in found.values} == {"keep_ratio"}
    assert "dense_attention" not in found.info
    assert found.series["kept_layers"]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (NoAttention(NoAttentionConfig(**TEXT)), "none"),
        (BudgetFormer(BudgetFormerConfig(**TEXT)), "AdaptiveAttention"),
    ],
    ids=["no-attention", "budgetformer"],
)
def test_a_model_without_dense_attention_has_no_values(model: Any, name: str) -> None:
    model.set_progress(1.0)
    found = measure(subject(model, texts()), {})
    assert found.values == []
    assert set(found.info["without_weights"]) == {"0", "1"}
    if name == "none":
        assert set(found.info["without_weights"].values()) == {"none"}


def test_keep_ratios_by_hand() -> None:
    keep = np.ones((2, 2, 5), bool)
    keep[0, 1, 1:4] = False
    keep[1, 1, 1] = False
    found = {tuple(sorted(v.context.items())): v.value for v in keep_ratios(keep)}
    assert found == {
        (("tokens", "patches"),): 0.75,
        (("layer", 0), ("tokens", "patches")): 1,
        (("layer", 1), ("tokens", "patches")): 0.5,
        (("tokens", "all"),): 0.8,
        (("layer", 0), ("tokens", "all")): 1,
        (("layer", 1), ("tokens", "all")): 0.6,
    }
    assert shown(keep, np.array([30, 40]))[0] == {"row_id": 30, "layers": [1, 1, 1, 2]}


def test_agreement_leaves_out_what_says_nothing() -> None:
    keep = np.ones((3, 2, 5), bool)
    keep[0, 1] = [True, True, False, False, True]
    keep[1, 1, 1:] = False
    attention = np.zeros((3, 2, 5))
    attention[0, 1] = [0.9, 0.4, 0.3, 0.2, 0.1]
    found = {v.name: v for v in agreement(keep, attention)}
    assert {v.context["layer"] for v in found.values()} == {1}
    assert {v.n for v in found.values()} == {1}
    assert found["top_k_overlap"].value == 0.5
    assert found["auprc"].value == pytest.approx((1 + 2 / 4) / 2)
    assert found["chance"].value == 0.5
    attention[:, 1] = np.nan
    assert agreement(keep, attention) == []


def test_what_cannot_be_measured_says_why() -> None:
    class Other(nn.Module):
        config = ViTConfig(**VISION)

    with pytest.raises(UsageError, match="meter 'sparsity': Other offers neither mixers"):
        measure(subject(cast("Any", Other()), images()), {})
    with pytest.raises(UsageError, match="did you mean 'n_inputs'"):
        measure(subject(vit(), images()), {"n_input": 3})
