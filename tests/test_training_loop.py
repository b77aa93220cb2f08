"""The loop on a tiny classifier: schedule, decay, records, failure, and same seed, same bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from benchmarks.data.load import EncodedSplit
from benchmarks.errors import UsageError
from benchmarks.training.build import build_model
from benchmarks.training.evaluate import PREDICT_SEED, predict
from benchmarks.training.loop import (
    DivergedError,
    learning_rate,
    normalised_entropy,
    parameter_groups,
    train,
)
from benchmarks.training.recipe import Recipe
from models.budgetformer_config import BudgetFormerConfig
from models.config import EncoderConfig
from models.interface import Classifier, ClassifierOutput, HeadDecisions
from models.vit_hybrid import ViTHybrid
from models.vit_hybrid_config import ViTHybridConfig

if TYPE_CHECKING:
    from benchmarks.data.load import TextData

DEPTH, HEADS = 2, 4
RECIPE = Recipe(epochs=3, batch_size=16, peak_lr=0.05)


@dataclass(frozen=True, kw_only=True)
class FakeConfig(EncoderConfig):
    heads: bool = False
    noise: bool = False


class Fake(Classifier):
    """A bag of embeddings; on demand with made-up head decisions and noise of its own."""

    config: FakeConfig

    def __init__(self, *, heads: bool = False, noise: bool = False) -> None:
        super().__init__()
        self.config = FakeConfig(
            depth=DEPTH, n_heads=HEADS, vocab_size=20, n_classes=2, heads=heads, noise=noise
        )
        self.embedding = nn.Embedding(20, 8)
        self.dropout = nn.Dropout(0.2)
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 2)
        self.generator = torch.Generator()
        self.progress: list[float] = []
        self.seeds: list[int] = []

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del segment_ids
        kept = (~key_padding_mask).unsqueeze(-1)
        pooled = (self.embedding(input_ids) * kept).sum(1) / kept.sum(1)
        if self.config.noise:
            pooled = pooled + 0.1 * torch.randn(pooled.shape, generator=self.generator)
        logits = self.out(self.norm(self.dropout(pooled)))
        if not self.config.heads:
            return ClassifierOutput(logits)
        n = len(input_ids)
        budget = torch.sigmoid(logits[:, :1]).expand(n, DEPTH)
        scores = torch.full((n, DEPTH, HEADS), 1 / HEADS)
        k = torch.full((n, DEPTH), 3)
        selected = torch.arange(HEADS).lt(3).expand(n, DEPTH, HEADS)
        if self.head_mode == "soft":
            logits = -logits
        return ClassifierOutput(logits, HeadDecisions(budget, scores, k, selected))

    def auxiliary_losses(self, output: ClassifierOutput) -> dict[str, Tensor]:
        return {} if output.heads is None else {"budget": 0.5 * output.heads.budget.mean()}

    def set_progress(self, progress: float) -> None:
        self.progress.append(progress)

    def schedule_state(self) -> dict[str, float]:
        return {"progress": self.progress[-1]}

    def reseed(self, seed: int) -> None:
        self.seeds.append(seed)
        self.generator.manual_seed(seed)


def make_split(name: str, n: int, seed: int) -> EncodedSplit:
    """Rows of 1 to 9 tokens; the label says whether tokens below 10 prevail."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 10, n)
    labels = random.integers(0, 2, n)
    tokens = [
        random.integers(2, 12, length) + 8 * label
        for length, label in zip(lengths, labels, strict=True)
    ]
    return EncodedSplit(
        name=cast(Any, name),
        row_ids=random.permutation(10 * n)[:n].astype(np.int64),
        tokens=np.concatenate([*tokens, np.zeros(0, int)]).astype(np.int32),
        segments=None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=labels.astype(np.int64),
        n_truncated=0,
        n_empty=0,
    )


def make_data(n_train: int = 100) -> TextData:
    data = SimpleNamespace(
        card=SimpleNamespace(name="made-up"),
        classes=("low", "high"),
        train=make_split("train", n_train, 0),
        validation=make_split("validation", 40, 1),
    )
    return cast("TextData", data)


def make_model(seed: int = 0, **options: bool) -> Fake:
    torch.manual_seed(seed)
    return Fake(**options)


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


def test_it_learns_and_records_every_epoch() -> None:
    model = make_model(heads=True)
    reports: list[dict[str, Any]] = []
    record = train(model, make_data(), RECIPE, 0, reports.append)
    assert [epoch.epoch for epoch in record.epochs] == [1, 2, 3]
    assert [epoch.steps for epoch in record.epochs] == [7, 7, 7]
    last = record.epochs[-1]
    assert last.validation_accuracy >= 0.9
    assert last.train_accuracy > record.epochs[0].train_accuracy
    assert set(last.losses) == {"task", "budget", "total"}
    assert last.losses["total"] == pytest.approx(last.losses["task"] + last.losses["budget"])
    assert last.losses["budget"] == pytest.approx(0.5 * cast(float, last.mean_s))
    assert last.mean_k == 3.0
    assert last.entropy == pytest.approx(1.0)
    assert last.schedules == {"progress": 1.0}
    assert 0 < last.lr < record.epochs[0].lr
    assert record.steps == 21
    assert 0 < record.seconds < 60
    assert not model.training
    assert [report["step"] for report in reports] == [10, 20, 21]
    assert reports[-1]["steps"] == 21
    assert reports[-1]["mean_k"] == 3.0
    assert reports[-1]["loss"] == pytest.approx(last.losses["total"])


def test_a_real_models_loss_parts_add_up_whatever_they_are_called() -> None:
    config = BudgetFormerConfig(
        depth=DEPTH, d_model=8, n_heads=HEADS, vocab_size=20, max_length=16, s_min=0.1, s_max=0.2
    )
    for epoch in train(build_model(config, 0), make_data(), RECIPE, 0).epochs:
        parts = {name: loss for name, loss in epoch.losses.items() if name != "total"}
        assert set(parts) == {"task", "budget", "entropy"}
        assert epoch.losses["total"] == pytest.approx(sum(parts.values()), abs=1e-6)
        assert abs(parts["entropy"]) <= config.entropy_weight * DEPTH  # summed over the layers
        assert 0 < cast(float, epoch.entropy) <= 1


def test_progress_runs_from_zero_to_one() -> None:
    model = make_model()
    train(model, make_data(), RECIPE, 0)
    assert model.progress[0] == 0.0
    assert model.progress[-1] == 1.0
    assert np.allclose(np.diff(model.progress), 1 / 20)


def test_a_model_without_heads_has_none_to_record() -> None:
    record = train(make_model(), make_data(), RECIPE, 0)
    assert record.epochs[0].mean_s is None
    assert record.epochs[0].mean_k is None
    assert record.epochs[0].entropy is None
    assert set(record.epochs[0].losses) == {"task", "total"}


@pytest.mark.parametrize("noise", [False, True])
def test_same_seed_same_bits_whatever_the_process_did_before(*, noise: bool) -> None:
    first = make_model(noise=noise)
    record = train(first, make_data(), RECIPE, 3)

    torch.manual_seed(99)
    torch.randn(1000)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    other = make_model(1, noise=noise)
    train(other, make_data(50), RECIPE, 4)
    predict(other, make_split("test", 30, 5))
    second = make_model(noise=noise)
    torch.manual_seed(7)
    again = train(second, make_data(), RECIPE, 3)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)

    assert bits(first) == bits(second)
    assert [e.losses for e in record.epochs] == [e.losses for e in again.epochs]


def test_another_seed_gives_other_bits() -> None:
    models = [make_model(), make_model()]
    for seed, model in enumerate(models):
        train(model, make_data(), RECIPE, seed)
    assert bits(models[0]) != bits(models[1])


def test_training_leaves_the_processes_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    model = Fake()
    torch.manual_seed(5)
    train(model, make_data(), RECIPE, 0)
    assert torch.equal(torch.randn(3), expected)


def test_each_epoch_draws_from_a_seed_of_its_own() -> None:
    model = make_model(noise=True)
    train(model, make_data(), RECIPE, 2)
    own = [seed for seed in model.seeds if seed != PREDICT_SEED]
    assert own == [2001, 2002, 2003]


class NotANumber(Fake):
    """Gives NaN from the 10th batch on."""

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        output = super().forward(input_ids, key_padding_mask, segment_ids)
        if self.training and len(self.progress) >= 10:
            output.logits = output.logits * math.nan
        return output


def test_a_loss_that_is_not_finite_names_epoch_and_step() -> None:
    torch.manual_seed(0)
    with pytest.raises(DivergedError, match=r"epoch 2, step 10 of 21: the loss is nan \(task"):
        train(NotANumber(), make_data(), RECIPE, 0)


def test_no_training_rows_is_one_clear_message() -> None:
    with pytest.raises(UsageError, match="'made-up' has no training rows"):
        train(make_model(), make_data(0), RECIPE, 0)


@given(steps=st.integers(1, 500), warmup=st.floats(0, 0.9))
def test_learning_rate_rises_to_the_peak_and_falls_towards_zero(steps: int, warmup: float) -> None:
    recipe = Recipe(warmup=warmup)
    rates = [learning_rate(step, steps, recipe) for step in range(steps)]
    warm = round(warmup * steps)
    rising, falling = np.diff(rates[:warm]), np.diff(rates[warm:])
    assert (rising > 0).all()
    assert (falling < 0).all()
    assert min(rates) > 0
    assert max(rates) == pytest.approx(recipe.peak_lr)
    if warm < steps:
        assert learning_rate(steps, steps, recipe) == pytest.approx(0, abs=1e-12)


def test_only_matrices_decay() -> None:
    model = make_model()
    decayed, free = parameter_groups(model, 0.1)
    assert [id(p) for p in decayed["params"]] == [id(model.out.weight)]
    assert decayed["weight_decay"] == 0.1
    assert free["weight_decay"] == 0.0
    assert {id(p) for p in free["params"]} == {
        id(model.embedding.weight),
        id(model.norm.weight),
        id(model.norm.bias),
        id(model.out.bias),
    }


def test_entropy_is_one_for_a_flat_and_zero_for_a_sure_choice() -> None:
    assert normalised_entropy(torch.full((3, 8), 1 / 8)).tolist() == pytest.approx([1.0] * 3)
    assert normalised_entropy(torch.eye(4)).tolist() == [0.0] * 4
    assert normalised_entropy(torch.ones(2, 1)).tolist() == [0.0, 0.0]


def test_predictions_stand_in_the_splits_order_for_any_batch_size() -> None:
    model = make_model(heads=True).eval()
    split = make_split("test", 33, 2)
    whole = predict(model, split, batch_size=64)
    assert whole.logits.shape == (33, 2)
    assert whole.k is not None
    assert whole.k.shape == (33, DEPTH)
    for batch_size in (1, 5):
        part = predict(model, split, batch_size=batch_size)
        np.testing.assert_allclose(part.logits, whole.logits, rtol=1e-5, atol=1e-6)
    for i in range(3):
        row = torch.from_numpy(split.tokens[split.offsets[i] : split.offsets[i + 1]].astype(int))
        alone = model(row[None], torch.zeros(1, len(row), dtype=torch.bool)).logits
        np.testing.assert_allclose(whole.logits[i], alone[0].detach(), rtol=1e-5, atol=1e-6)


def test_predict_repeats_itself_and_restores_the_mode() -> None:
    model = make_model(heads=True, noise=True).train()
    split = make_split("test", 33, 2)
    first, second = predict(model, split), predict(model, split)
    assert np.array_equal(first.logits, second.logits)
    assert model.training
    soft = predict(model, split, head_mode="soft")
    assert np.array_equal(soft.logits, -first.logits)
    assert model.head_mode == "auto"


def test_an_empty_split_has_empty_predictions() -> None:
    assert predict(make_model(), make_split("test", 0, 2)).predicted.shape == (0,)


def test_weight_decay_spares_stacked_biases_and_a_model_s_tables() -> None:
    model = ViTHybrid(
        ViTHybridConfig(depth=2, d_model=12, n_heads=3, max_length=8, replace=(1,), mixer="bilstm")
    )
    decayed, free = parameter_groups(model, 0.1)
    names = {id(p): name for name, p in model.named_parameters()}
    spared = {names[id(p)] for p in free["params"]}
    assert {"cls_token", "pos_embed"} <= spared
    assert {name for name in names.values() if "bias" in name} <= spared
    assert {names[id(p)] for p in decayed["params"]} == {
        name for name in names.values() if name.endswith(("weight", "weight_ih", "weight_hh"))
    } - {name for name in names.values() if "norm" in name}
