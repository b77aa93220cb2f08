"""Fixed budgets, static heads, gates and mixed k: the models that the studies are made of."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_budgetformer import GEOMETRY
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.data.load import EncodedSplit
from benchmarks.errors import UsageError
from benchmarks.training.importance import head_importance
from benchmarks.training.start import start_from_base
from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.config import TrainedSummary
from models.dense import Dense
from models.dense_config import DenseConfig
from models.fixed_budget import FixedBudget
from models.fixed_budget_config import FixedBudgetConfig
from models.head_budget import heads_for, soft_gates
from models.matched_k import mixed
from models.random_trained_config import RandomTrainedConfig
from models.static_heads import StaticHeads, spread_evenly
from models.static_heads_config import StaticHeadsConfig

HISTOGRAM = [[0, 30, 10, 0, 0], [0, 0, 10, 10, 20]]


def summary(histogram: list[list[int]] | None = None) -> TrainedSummary:
    source = BudgetFormerConfig(**GEOMETRY)
    return TrainedSummary(dataclasses.asdict(source), histogram or HISTOGRAM, 1.0, [6])


def tokens(rows: int, length: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(1, 30, (rows, length), generator=generator)
    return ids, torch.zeros(rows, length, dtype=torch.bool)


# --- gates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("budget", [[1.0, 0.5, 0.25, 0.25], [0.8, 0.4, 0.4, 0.0]]),
        ("scaled", [[1.0, 0.5, 0.25, 0.25], [0.8, 0.4, 0.4, 0.0]]),
        ("probability", [[0.5, 0.25, 0.125, 0.125], [0.5, 0.25, 0.25, 0.0]]),
        ("normalised", [[1.0, 0.5, 0.25, 0.25], [1.0, 0.5, 0.5, 0.0]]),
    ],
)
def test_gates_of_two_inputs_worked_out_by_hand(gate: str, expected: list[list[float]]) -> None:
    s = torch.tensor([0.5, 0.4])
    p = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.5, 0.25, 0.25, 0.0]])
    torch.testing.assert_close(soft_gates(s, p, gate), torch.tensor(expected))


def test_only_the_budget_gate_has_a_ceiling() -> None:
    s, p = torch.tensor([1.0]), torch.tensor([[0.7, 0.1, 0.1, 0.1]])
    torch.testing.assert_close(soft_gates(s, p, "budget")[0, 0], torch.tensor(1.0))
    torch.testing.assert_close(soft_gates(s, p, "scaled")[0, 0], torch.tensor(2.8))
    with pytest.raises(ValueError, match="gate must be one of 'budget', 'probability'"):
        BudgetFormerConfig(**GEOMETRY, gate="other")  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", ["budget", "probability", "normalised", "scaled"])
def test_kept_gates_weight_what_inference_computes(gate: str) -> None:
    torch.manual_seed(0)
    config = BudgetFormerConfig(**GEOMETRY, gate=gate, keep_gate=True)  # type: ignore[arg-type]
    model = BudgetFormer(config).eval()
    ids, mask = tokens(16)
    mask[3, 5:] = True
    hard = model(ids, mask)
    model.head_mode = "masked"
    masked = model(ids, mask)
    torch.testing.assert_close(hard.logits, masked.logits)
    model.head_mode = "soft"
    soft = model(ids, mask)
    assert not torch.allclose(hard.logits, soft.logits)
    assert 0 < hard.heads.k.float().mean() < 4
    plain = BudgetFormer(dataclasses.replace(config, keep_gate=False)).eval()
    plain.load_state_dict(model.state_dict())
    assert not torch.allclose(hard.logits, plain(ids, mask).logits)


def test_with_every_head_kept_gates_leave_no_mismatch() -> None:
    model = BudgetFormer(BudgetFormerConfig(**GEOMETRY, keep_gate=True, fixed_k=4)).eval()
    ids, mask = tokens(5)
    hard = model(ids, mask).logits
    model.head_mode = "soft"
    torch.testing.assert_close(hard, model(ids, mask).logits)


def test_kept_gates_cost_no_more_products() -> None:
    config = BudgetFormerConfig(**GEOMETRY, keep_gate=True, fixed_k=2)
    model = BudgetFormer(config).eval()
    model.plain_attention = True
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*tokens(1))
    assert counter.get_total_flops() == 2 * config.macs(8).total
    plain = dataclasses.replace(config, keep_gate=False).macs(8)
    assert config.macs(8).total == plain.total
    assert config.macs(8).elementwise == plain.elementwise + 8 * 3 * (2 + 2)


# --- fixed budget --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["soft", "hard", "masked"])
@pytest.mark.parametrize("budget", [0.3, 0.75])
def test_a_fixed_budget_is_budgetformer_whose_network_says_the_same(
    budget: float, mode: str
) -> None:
    torch.manual_seed(0)
    fixed = FixedBudget(FixedBudgetConfig(**GEOMETRY, budget=budget)).eval()
    free = BudgetFormer(BudgetFormerConfig(**GEOMETRY)).eval()
    missing = free.load_state_dict(fixed.state_dict(), strict=False)
    assert not missing.unexpected_keys
    for block in free.blocks:
        network = cast(Any, block).attention.controller
        torch.nn.init.zeros_(network.budget_out.weight)
        torch.nn.init.constant_(network.budget_out.bias, math.log(budget / (1 - budget)))
    fixed.head_mode = free.head_mode = mode  # type: ignore[assignment]
    ids, mask = tokens(6)
    one, other = fixed(ids, mask), free(ids, mask)
    torch.testing.assert_close(one.logits, other.logits)
    assert torch.equal(one.heads.k, other.heads.k)
    assert set(fixed.auxiliary_losses(one)) == {"entropy"}


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("n_heads", [1, 3, 4, 8])
def test_a_fixed_budget_states_the_k_that_it_computes(n_heads: int, rounding: Any) -> None:
    for percent in range(1, 101):
        config = FixedBudgetConfig(
            d_model=24, n_heads=n_heads, budget=percent / 100, rounding=rounding
        )
        expected = heads_for(torch.tensor([percent / 100]), n_heads, rounding)
        assert config.k == expected.item()
    assert config.macs(5) == config.macs(5, [n_heads] * 2)


def test_a_fixed_budget_has_nothing_to_learn_and_refuses_none_at_all() -> None:
    without = {"s_min", "s_max", "budget_weight", "controller_width", "fixed_k", "initial_budget"}
    assert without.isdisjoint(FixedBudgetConfig.declarable())
    for budget in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"budget must lie in \(0, 1\]"):
            FixedBudgetConfig(budget=budget)


# --- mixed k -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any))
def test_mixing_keeps_the_mean_and_uses_its_neighbours_only(counts: list[int]) -> None:
    row = [0, *counts]
    found = mixed(row)
    assert len(found) == len(row)
    assert sum(found) == sum(row)
    total = sum(k * n for k, n in enumerate(row))
    assert sum(k * n for k, n in enumerate(found)) == total
    used = [k for k, n in enumerate(found) if n]
    assert used in ([total // sum(row)], [total // sum(row), total // sum(row) + 1])


def test_random_trained_can_keep_the_mean_alone() -> None:
    assert RandomTrainedConfig(**GEOMETRY).resolve(summary()).k_histogram[1] == (0, 0, 10, 10, 20)
    config = RandomTrainedConfig(**GEOMETRY, spread="mean").resolve(summary())
    assert config.k_histogram == ((0, 30, 10, 0, 0), (0, 0, 0, 30, 10))
    with pytest.raises(ValueError, match="spread must be 'histogram' or 'mean'"):
        RandomTrainedConfig(spread="other")  # type: ignore[arg-type]


@given(st.integers(1, 200), st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any))
def test_every_batch_meets_each_share_up_to_one_input(n: int, counts: list[int]) -> None:
    row = (0, *counts)
    edges = torch.tensor(row, dtype=torch.float64).cumsum(0)
    k = spread_evenly(edges, n, torch.Generator().manual_seed(n))
    found = torch.bincount(k, minlength=5)
    for heads, weight in enumerate(row):
        assert abs(found[heads].item() - n * weight / sum(row)) < 1 + 1e-9
        assert weight or not found[heads]


def test_single_inputs_meet_the_share_on_average_and_who_gets_more_is_random() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.tensor([0.0, 3.0, 4.0], dtype=torch.float64)
    alone = torch.cat([spread_evenly(edges, 1, generator) for _ in range(4000)])
    # five standard deviations
    assert abs((alone == 2).double().mean().item() - 0.25) < 5 * (0.1875 / 4000) ** 0.5
    together = torch.stack([spread_evenly(edges, 8, generator) for _ in range(2000)])
    assert ((together == 2).sum(1) == 2).all()
    assert ((together == 2).double().mean(0) - 0.25).abs().max() < 5 * (0.1875 / 2000) ** 0.5


# --- static heads --------------------------------------------------------------------------------


def static(dense: Dense, **changes: Any) -> StaticHeads:
    model = StaticHeads(StaticHeadsConfig(**GEOMETRY, **changes).resolve(summary()))
    model.start_from(dense.state_dict())
    return model


@pytest.fixture
def dense() -> Dense:
    torch.manual_seed(1)
    return Dense(DenseConfig(**GEOMETRY)).eval()


def split_of(rows: int) -> EncodedSplit:
    ids, _ = tokens(rows, 5)
    return EncodedSplit(
        name="train",
        row_ids=np.arange(rows, dtype=np.int64),
        tokens=ids.flatten().numpy().astype(np.int32),
        segments=None,
        offsets=np.arange(0, 5 * rows + 1, 5, dtype=np.int64),
        labels=np.arange(rows, dtype=np.int64) % 3,
    )


def loss_with(dense: Dense, layer: int, head: int, xi: float, row: int) -> float:
    """The dense model's loss on one input, with one head's output multiplied by xi."""
    model = Dense(cast(DenseConfig, dense.config)).double().eval()
    state = {name: tensor.double() for name, tensor in dense.state_dict().items()}
    # the rows of the output projection that belong to a head multiply its output
    state[f"blocks.{layer}.attention.output.weight"][3 * head : 3 * head + 3] *= xi
    model.load_state_dict(state)
    ids, mask = tokens(20, 5)
    logits = model(ids[row : row + 1], mask[row : row + 1]).logits
    return functional.cross_entropy(logits, torch.tensor([row % 3])).item()


def test_importance_is_the_mean_size_of_finite_differences_of_the_loss(dense: Dense) -> None:
    rows, step = 6, 1e-4
    expected = torch.zeros(2, 4, dtype=torch.float64)
    for layer in range(2):
        for head in range(4):
            for row in range(rows):
                above = loss_with(dense, layer, head, 1 + step, row)
                below = loss_with(dense, layer, head, 1 - step, row)
                expected[layer, head] += abs(above - below) / (2 * step) / rows
    model = static(dense)
    ids, mask = tokens(20, 5)
    labels = torch.arange(rows) % 3
    gradients = model.eval().head_gradients(ids[:rows], mask[:rows], None, labels)
    found = gradients.abs().double().mean(0)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)
    split = split_of(20).take(np.arange(rows))
    normalised = expected / expected.square().sum(1, keepdim=True).sqrt()
    torch.testing.assert_close(
        head_importance(model, split).double(), normalised, rtol=1e-3, atol=1e-5
    )


def test_static_heads_keeps_the_most_important_ones_for_every_input(dense: Dense) -> None:
    model = static(dense).eval()
    model.set_importance(torch.tensor([[0.1, 0.9, 0.3, 0.2], [0.5, 0.6, 0.7, 0.1]]))
    heads = model(*tokens(40)).heads
    assert heads.k.sum(0).tolist() == [50, 130]  # means 1.25 and 3.25 of 40 inputs
    first, second = heads.selected.unbind(1)
    assert first.sum(0).tolist() == [0, 40, 10, 0]
    assert second.sum(0).tolist() == [40, 40, 40, 10]


def test_static_heads_is_the_dense_model_when_it_keeps_all(dense: Dense) -> None:
    every = summary([[0, 0, 0, 0, 5]] * 2)
    model = StaticHeads(StaticHeadsConfig(**GEOMETRY).resolve(every)).eval()
    model.start_from(dense.state_dict())
    ids, mask = tokens(5)
    mask[2, 4:] = True
    torch.testing.assert_close(model(ids, mask).logits, dense(ids, mask).logits)
    assert StaticHeadsConfig(**GEOMETRY).macs(7) == DenseConfig(**GEOMETRY).macs(7)


def test_static_heads_computes_what_a_mask_would_keep(dense: Dense) -> None:
    model = static(dense).eval()
    model.set_importance(torch.rand(2, 4, generator=torch.Generator().manual_seed(4)))
    ids, mask = tokens(9)
    mask[2, 4:] = True
    outputs = []
    for mode in ("hard", "masked"):
        model.head_mode = mode
        model.reseed(3)
        outputs.append(model(ids, mask).logits)
    torch.testing.assert_close(*outputs)


def test_a_base_of_another_kind_is_one_clear_error(dense: Dense) -> None:
    data = cast(Any, type("Data", (), {"train": split_of(6)}))
    with pytest.raises(UsageError, match="do not fit StaticHeads"):
        start_from_base(static(dense), BudgetFormer(BudgetFormerConfig()).state_dict(), data)
    with pytest.raises(UsageError, match="Dense cannot start from another model's weights"):
        start_from_base(dense, dense.state_dict(), data)
    model = static(dense)
    start_from_base(model, dense.state_dict(), data)
    norms = torch.stack([cast(Any, b).attention.importance.norm() for b in model.blocks])
    torch.testing.assert_close(norms, torch.ones(2))


def test_static_heads_needs_a_fitting_source() -> None:
    nothing = dataclasses.replace(summary(), k_histogram=None)
    with pytest.raises(ValueError, match="needs a source that decides heads"):
        StaticHeadsConfig(**GEOMETRY).resolve(nothing)
    with pytest.raises(ValueError, match="one row per layer"):
        StaticHeadsConfig(**GEOMETRY).resolve(summary([[0, 1]]))
    with pytest.raises(ValueError, match="finetune_epochs must not be negative"):
        StaticHeadsConfig(finetune_epochs=-1)
    assert StaticHeadsConfig(finetune_epochs=2).training_epochs(3) == 2
    assert DenseConfig().training_epochs(3) == 3
