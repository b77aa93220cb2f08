"""MACs: handlers against hand counts, and formulas that are wrong by little and by too much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.data.batches import Batch, collate
from benchmarks.data.load import EncodedSplit, TextData, load_text
from benchmarks.errors import MeterError, UsageError
from benchmarks.meters.flop_handlers import (
    count_by_dispatch,
    count_with_fvcore,
    executed_counter,
)
from benchmarks.meters.flops import check_formula, costs_of, measure
from benchmarks.meters.interface import Subject
from benchmarks.planning.points import Point
from benchmarks.training.build import build_model
from models.budgetformer_config import BudgetFormerConfig
from models.config import EncoderConfig, Macs
from models.dense_config import DenseConfig
from models.interface import Classifier, ClassifierOutput

LENGTHS = (2, 12, 6, 9, 12, 3)


def data_with(lengths: tuple[int, ...] = LENGTHS) -> TextData:
    data = load_text("random-tokens", max_length=12)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    whole = data.test()
    split = EncodedSplit(
        name="generated",
        row_ids=np.arange(len(lengths), dtype=np.int64) + 100,
        tokens=whole.tokens[: offsets[-1]],
        segments=None,
        offsets=offsets,
        labels=np.zeros(len(lengths), np.int64),
    )
    return replace(data, _test=split)


def subject_of(config: EncoderConfig, data: TextData) -> Subject:
    model = build_model(config, seed=0)
    model.set_progress(1.0)
    return Subject(Point("any", {}, "random-tokens", 12, recipe=None), model.eval(), data, None)


def sized(cls: type[EncoderConfig], **params: Any) -> Any:
    size: dict[str, Any] = {"depth": 2, "d_model": 16, "n_heads": 4, "max_length": 12}
    return cls(**{**size, **params})


class Plain(Classifier):
    """One linear layer, attention with a wider value, a batched product added to something."""

    def __init__(self, work: str) -> None:
        super().__init__()
        self.config = EncoderConfig(d_model=8, n_heads=2)
        self.embed = nn.Embedding(1000, 8)
        self.linear = nn.Linear(8, 6)
        self.work = work

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del key_padding_mask, segment_ids
        x = self.embed(input_ids)
        if self.work == "linear":
            x = self.linear(x)
        elif self.work == "attention":
            heads = x.view(*x.shape[:2], 2, 4).transpose(1, 2)
            x = functional.scaled_dot_product_attention(
                heads, heads, torch.cat([heads, heads], dim=-1)
            )
        elif self.work == "baddbmm":
            x = torch.baddbmm(torch.zeros(1), x, x.transpose(1, 2))
        elif self.work == "vector":
            x = x[0] @ x[0, 0]
        return ClassifierOutput(x.flatten()[None, :2])


def batch_of(length: int) -> Batch:
    return collate(data_with((length,)).test(), [0])


@pytest.mark.parametrize(
    ("work", "macs"),
    [
        ("linear", 7 * 8 * 6),
        ("attention", 2 * 7 * 7 * (4 + 8)),
        ("baddbmm", 7 * 8 * 7),
        ("nothing", 0),
    ],
)
def test_both_counters_agree_with_a_hand_count(work: str, macs: int) -> None:
    model = Plain(work).eval()
    assert count_with_fvcore(model, batch_of(7)).macs == macs
    if work != "attention":  # MATH takes no wider value on this path
        assert count_by_dispatch(model, batch_of(7)).macs == macs


def test_gathers_count_nothing_and_are_listed() -> None:
    counted = count_with_fvcore(Plain("nothing").eval(), batch_of(7))
    assert counted.macs == 0
    assert "embedding" in counted.ignored


def test_an_operator_that_nobody_counts_is_an_error_if_it_multiplies_matrices() -> None:
    class Recurrent(Plain):
        def __init__(self) -> None:
            super().__init__("nothing")
            self.rnn = nn.RNN(8, 2, batch_first=True)

        def forward(self, input_ids: Tensor, *_: Any) -> ClassifierOutput:
            return ClassifierOutput(self.rnn(self.embed(input_ids))[0][:, 0])

    with pytest.raises(MeterError, match="rnn_tanh"):
        count_with_fvcore(Recurrent().eval(), batch_of(7))


def test_fused_attention_is_counted_in_whole_passes() -> None:
    query = torch.zeros(3, 2, 5, 4)
    with executed_counter() as counter:
        functional.scaled_dot_product_attention(query, query, query)
    assert counter.get_total_flops() == 2 * 3 * 2 * 5 * 5 * 4 * 2


@pytest.mark.parametrize(
    "config",
    [
        sized(DenseConfig),
        sized(BudgetFormerConfig),
        sized(BudgetFormerConfig, fixed_k=2),
        sized(BudgetFormerConfig, fixed_k=4),
    ],
    ids=["dense", "budgetformer", "two-heads", "all-heads"],
)
def test_the_models_formulas_are_exact(config: EncoderConfig) -> None:
    subject = subject_of(config, data_with())
    check = measure(subject, {}).info["check"]
    assert check["largest_difference"] == {"fvcore": 0.0, "dispatch": 0.0}
    assert {row["length"] for row in check["inputs"]} >= {2, 12}
    assert check["fvcore_excluded"] == ["layer_norm"]


def test_values_are_a_distribution_over_the_inputs() -> None:
    config = sized(DenseConfig)
    result = measure(subject_of(config, data_with()), {})
    costs = [config.macs(length).total for length in LENGTHS]
    named = {(v.name, v.context.get("stat")): v for v in result.values}
    assert named["macs", "mean"].value == pytest.approx(np.mean(costs))
    assert named["macs", "mean"].n == len(LENGTHS)
    assert named["macs", "p95"].value == pytest.approx(np.quantile(costs, 0.95))
    assert named["flops", "p50"].value == 2 * named["macs", "p50"].value
    assert named["macs_controllers", "mean"].value == 0
    assert result.arrays is not None
    assert result.arrays["macs"].tolist() == costs
    assert result.arrays["row_id"].tolist() == [100, 101, 102, 103, 104, 105]
    assert result.data is not None
    assert result.data.split == "generated"


def test_executed_work_includes_padding() -> None:
    config = sized(DenseConfig)
    subject = subject_of(config, data_with())
    padded = next(v for v in measure(subject, {}).values if v.name == "macs_executed")
    alone = next(v for v in measure(subject, {"batch_size": 1}).values if v.name == "macs_executed")
    assert padded.value == pytest.approx(config.macs(12).total)
    assert alone.value == pytest.approx(np.mean([config.macs(length).total for length in LENGTHS]))


def test_macs_at_a_declared_k_need_no_trained_budget() -> None:
    adaptive = sized(BudgetFormerConfig)
    values = measure(subject_of(adaptive, data_with()), {}).values
    at_k = {v.context["k"]: v.value for v in values if v.name == "macs_at_k"}
    assert list(at_k) == [1, 2, 3, 4]
    assert at_k[3] == pytest.approx(np.mean([adaptive.macs(n, [3, 3]).total for n in LENGTHS]))
    dense = sized(DenseConfig)
    values = measure(subject_of(dense, data_with()), {}).values
    (only,) = (v for v in values if v.name == "macs_at_k")
    assert only.context["k"] == 4
    assert only.value == pytest.approx(np.mean([dense.macs(n).total for n in LENGTHS]))


@dataclass(frozen=True, kw_only=True)
class Stretched(DenseConfig):
    """States its feed-forward work wrongly by a factor."""

    factor: float = 1.0

    def macs(self, length: int, k: Any = None) -> Macs:
        right = super().macs(length, k)
        return replace(right, feed_forward=right.feed_forward + (self.factor - 1) * right.total)


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_formula_that_is_off_by_two_percent_fails(factor: float) -> None:
    subject = subject_of(sized(Stretched, factor=factor), data_with())
    with pytest.raises(MeterError, match=r"(?s)the formula says .* fvcore counts .*\n +linear +\d"):
        measure(subject, {})


def test_a_formula_that_is_off_by_half_a_percent_passes_and_says_so() -> None:
    subject = subject_of(sized(Stretched, factor=1.005), data_with())
    check = measure(subject, {}).info["check"]
    assert 0.004 < check["largest_difference"]["fvcore"] < 0.006


def test_a_mask_that_computes_all_heads_cannot_claim_the_savings() -> None:
    subject = subject_of(sized(BudgetFormerConfig, fixed_k=1), data_with())
    subject.model.head_mode = "masked"
    with pytest.raises(MeterError, match="apart"):
        check_formula(subject.model, subject.data.test(), None)


def test_inputs_with_the_fewest_and_the_most_heads_are_checked() -> None:
    subject = subject_of(sized(BudgetFormerConfig), data_with())
    k = np.array([[2, 2], [2, 2], [2, 2], [1, 1], [2, 2], [4, 4]])
    check = check_formula(subject.model, subject.data.test(), k)
    assert {103, 105} <= {row["row_id"] for row in check["inputs"]}


def test_costs_take_each_inputs_own_heads() -> None:
    config = cast(EncoderConfig, sized(BudgetFormerConfig))
    k = np.array([[1, 2], [4, 4]])
    costs = costs_of(config, [5, 5], k)
    assert [c.total for c in costs] == [config.macs(5, [1, 2]).total, config.macs(5, [4, 4]).total]


def test_an_unknown_option_names_its_neighbours() -> None:
    with pytest.raises(UsageError, match="did you mean 'batch_size'"):
        measure(subject_of(sized(DenseConfig), data_with()), {"batchsize": 8})
