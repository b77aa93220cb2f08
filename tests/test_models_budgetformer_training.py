"""BudgetFormer in training: soft gates, losses, the start of the budget, schedules, noise."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_budgetformer import EPS, GEOMETRY, batch, make
from torch import Tensor

from benchmarks.planning.declared import declared_params
from models.budgetformer import BudgetAttention
from models.budgetformer_config import BudgetFormerConfig
from models.head_budget import budget_loss, relative_entropy, soft_gates
from models.schedules import Linear


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 10_000))
def test_soft_gates_never_exceed_one_nor_the_budget(rows: int, n_heads: int, seed: int) -> None:
    torch.manual_seed(seed)
    s, p = torch.rand(rows), torch.softmax(4 * torch.randn(rows, n_heads), 1)
    gates = soft_gates(s, p)
    assert (gates >= 0).all()
    assert (gates <= 1).all()
    assert (gates.sum(1) <= s * n_heads * (1 + n_heads * EPS)).all()
    expected = [[min(1.0, s[i].item() * n_heads * q) for q in p[i].tolist()] for i in range(rows)]
    torch.testing.assert_close(gates, torch.tensor(expected))


def test_the_task_alone_teaches_both_controllers_in_every_layer() -> None:
    model = make().train()
    model.set_progress(0.0)
    ids, mask = batch()
    model(ids, mask).logits.square().sum().backward()
    controllers = [(n, p) for n, p in model.named_parameters() if ".controller." in n]
    assert len(controllers) == 6 * GEOMETRY["depth"]
    for name, parameter in controllers:
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_a_head_at_the_ceiling_still_teaches_the_scorer_through_the_others() -> None:
    z = torch.tensor([[3.0, 0.0, 0.0]], requires_grad=True)
    gates = soft_gates(torch.tensor([0.9]), torch.softmax(z, 1))
    assert gates[0, 0] == 1.0
    torch.autograd.backward((gates * torch.tensor([[1.0, 2.0, -1.0]])).sum())
    assert z.grad is not None
    assert (z.grad != 0).all()


def test_budget_starts_near_one_half_and_hinge_is_quadratic() -> None:
    ids, mask = batch()
    assert (make().eval()(ids, mask).heads.budget - 0.5).abs().max() < 0.15
    s = torch.tensor([[0.2, 0.5], [0.45, 0.9]])
    # layer by layer below 0.4 by 0.2, above 0.6 by 0.3; summed over layers, mean of two inputs
    assert budget_loss(s, 0.4, 0.6).item() == pytest.approx((0.2**2 + 0.3**2) / 2)
    assert budget_loss(s, 0.0, 1.0).item() == 0.0


@pytest.mark.parametrize("start", [0.05, 0.2, 0.8, 0.95])
def test_budget_starts_where_it_is_told_to(start: float) -> None:
    ids, mask = batch(rows=16)
    usual, told = make().eval(), make(initial_budget=start).eval()
    s = told(ids, mask).heads.budget
    # the same weights otherwise: only the last bias moves, by logit(start)
    for name, tensor in usual.state_dict().items():
        moved = name.endswith("budget_out.bias")
        assert moved != torch.equal(tensor, told.state_dict()[name]), name
    with torch.no_grad():
        for block in usual.blocks:
            cast(Any, block).attention.controller.budget_out.bias.fill_(torch.tensor(start).logit())
    torch.testing.assert_close(usual(ids, mask).heads.budget, s)
    # fresh weights add to the bias what moved s from one half, at most by a sigmoid's slope there
    spread = (make().eval()(ids, mask).heads.budget.logit()).abs().max().item()
    assert abs(s.mean().item() - start) <= spread / 4
    assert spread < 0.6


def test_the_usual_start_is_one_half_to_the_bit() -> None:
    for name, tensor in make(initial_budget=0.5).state_dict().items():
        assert torch.equal(tensor, make().state_dict()[name])
        if name.endswith("budget_out.bias"):
            assert torch.equal(tensor, torch.zeros(1))
    assert declared_params(BudgetFormerConfig, {"initial_budget": 0.5}) == {}


def test_entropy_term_rewards_spread_first_and_decision_last() -> None:
    uniform = torch.full((3, 2, 4), 0.25)
    assert relative_entropy(uniform).item() == pytest.approx(2.0)  # one per layer
    decided = torch.zeros(3, 2, 4)
    decided[..., 0] = 1.0
    decided.requires_grad_()
    entropy = relative_entropy(decided)
    torch.autograd.backward(entropy)
    assert entropy.item() == pytest.approx(0.0)
    assert torch.isfinite(decided.grad).all()  # type: ignore[arg-type]
    assert relative_entropy(torch.ones(3, 2, 1)).item() == 0.0

    model = make(entropy_weight=0.3).train()
    ids, mask = batch()
    signs = []
    for progress in (0.0, 0.5, 1.0):
        model.set_progress(progress)
        signs.append(model.auxiliary_losses(model(ids, mask))["entropy"].item())
    assert signs[0] < 0
    assert signs[1] == 0
    assert signs[2] > 0


def test_schedules_are_linear_and_a_new_model_stands_at_their_end() -> None:
    model = make()
    assert model.schedule_state() == {"tau": 0.5, "noise": 0.0, "entropy_weight": 0.01}
    model.set_progress(0.25)
    state = model.schedule_state()
    assert state == pytest.approx({"tau": 1.625, "noise": 0.75, "entropy_weight": -0.005})
    with pytest.raises(ValueError, match="progress must lie in"):
        Linear(0, 1).at(1.5)


def test_noise_comes_from_a_generator_of_its_own_and_only_in_training() -> None:
    model = make().train()
    model.set_progress(0.0)
    ids, mask = batch()

    def scores(seed: int) -> Tensor:
        model.reseed(seed)
        found: Tensor = model(ids, mask).heads.scores
        return found

    before = torch.get_rng_state()
    assert torch.equal(scores(1), scores(1))
    assert not torch.equal(scores(1), scores(2))
    assert torch.equal(before, torch.get_rng_state())
    model.eval()
    assert torch.equal(scores(1), scores(2))


def test_a_copy_has_one_generator_of_its_own() -> None:
    model = make()
    twin = copy.deepcopy(model)
    assert twin.generator is not model.generator
    for module in twin.modules():
        if isinstance(module, BudgetAttention):
            assert module.generator is twin.generator
