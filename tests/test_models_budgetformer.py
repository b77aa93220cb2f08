"""BudgetFormer: selection, its twin that masks, losses, schedules."""

from __future__ import annotations

import copy
import math
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import models.head_strategy
from benchmarks.planning.declared import declared_params
from models.budgetformer import BudgetAttention, BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.dense import Dense
from models.dense_config import DenseConfig
from models.encoder import Shared
from models.head_budget import (
    HeadBudget,
    best_first,
    budget_loss,
    first_of,
    heads_for,
    relative_entropy,
    soft_gates,
)
from models.schedules import Linear
from models.selected_heads import SelectiveAttention

EPS = torch.finfo(torch.float32).eps
GEOMETRY: dict[str, Any] = {
    "depth": 2,
    "d_model": 12,
    "n_heads": 4,
    "vocab_size": 30,
    "n_classes": 3,
    "max_length": 8,
    "dropout": 0.0,
}


def make(seed: int = 0, **changes: Any) -> BudgetFormer:
    torch.manual_seed(seed)
    return BudgetFormer(BudgetFormerConfig(**(GEOMETRY | changes)))


def batch(rows: int = 6, length: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1, 30, (rows, length), generator=generator)
    lengths = torch.randint(1, length + 1, (rows, 1), generator=generator)
    return ids, torch.arange(length) >= lengths


def spread_budgets(model: BudgetFormer) -> None:
    """Makes k differ between the inputs of a batch."""
    for module in model.modules():
        if isinstance(module, BudgetAttention):
            module.controller.budget_out.weight.data.mul_(40)
            module.controller.budget_in.weight.data.mul_(4)


# --- selection -----------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20),
    st.integers(1, 16),
    st.sampled_from(["floor", "ceil"]),
)
def test_k_is_the_rounded_share(shares: list[float], n_heads: int, rounding: str) -> None:
    s = torch.tensor(shares)
    got = heads_for(s, n_heads, rounding).tolist()
    for share, k in zip(s.tolist(), got, strict=True):
        asked = share * n_heads
        assert 1 <= k <= n_heads
        if rounding == "floor":
            assert k <= max(1, asked + 2e-6)
            assert k > asked - 1 - 1e-6
        else:
            assert k >= min(n_heads, asked - 2e-6)
            assert k < max(1, asked) + 1


def test_whole_shares_are_not_lost_to_rounding() -> None:
    for n_heads in (3, 7, 8, 12):
        s = torch.arange(1, n_heads + 1) / n_heads
        expected = list(range(1, n_heads + 1))
        below, above = torch.nextafter(s, s - 1), torch.nextafter(s, s + 1)
        for near in (s, below, above):
            assert heads_for(near, n_heads, "floor").tolist() == expected
            assert heads_for(near, n_heads, "ceil").tolist() == expected


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 1000), st.booleans())
def test_the_k_best_heads_are_selected(rows: int, n_heads: int, seed: int, ties: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(rows, n_heads, generator=generator)
    if ties:
        scores = (scores * 2).round()
    k = torch.randint(1, n_heads + 1, (rows,), generator=generator)
    selected = first_of(best_first(scores), k)
    assert torch.equal(selected.sum(1), k)
    for row in range(rows):
        ranked = sorted(range(n_heads), key=lambda h: (-scores[row, h].item(), h))
        assert set(ranked[: k[row]]) == set(selected[row].nonzero().squeeze(1).tolist())


@given(
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(1, 20),
    st.integers(1, 9),
    st.floats(0.05, 4.0),
    st.floats(0.1, 10.0),
    st.integers(0, 10_000),
)
def test_controllers_say_the_same_with_and_without_gradients(
    rows: int, d_model: int, width: int, n_heads: int, tau: float, scale: float, seed: int
) -> None:
    torch.manual_seed(seed)
    network = HeadBudget(d_model, width, n_heads)
    pooled = scale * torch.randn(rows, d_model)
    s, p = network(pooled, None, tau)
    with torch.no_grad():
        quick_s, quick_p = network(pooled, None, tau)
        exact_s, exact_p = copy.deepcopy(network).double()(pooled.double(), None, tau)
        # sums of no more terms than this, of values no larger than these (|GELU(h)| <= |h|)
        hidden = pooled.abs() @ network.budget_in.weight.abs().t() + network.budget_in.bias.abs()
        logit = (hidden @ network.budget_out.weight.abs().t() + 1).max().item()
        z = (pooled.abs() @ network.scorer.weight.abs().t() + 1).max().item() / tau
    terms = 4 * (d_model + width + 4) * EPS
    # a sigmoid's slope is at most 1/4; p (1 - p) is, in every direction, at most 1/2
    for found in (s, quick_s):
        assert (found - exact_s).abs().max() <= terms * logit / 4 + EPS
    for found in (p, quick_p):
        assert (found - exact_p).abs().max() <= terms * z / 2 + EPS
    assert quick_s.shape == (rows,)
    torch.testing.assert_close(quick_p.sum(1), torch.ones(rows))


def test_fixed_k_overrides_the_budget_but_not_training() -> None:
    free, fixed = make(), make(fixed_k=3)
    ids, mask = batch()
    assert (fixed.eval()(ids, mask).heads.k == 3).all()
    for model in (free, fixed):
        model.train()
        model.reseed(1)
    assert torch.equal(free(ids, mask).logits, fixed(ids, mask).logits)


# --- the fast path and its twin ------------------------------------------------------------------


@st.composite
def layers(draw: st.DrawFn) -> tuple[SelectiveAttention, Tensor, Tensor, Tensor, Tensor | None]:
    n_heads, head_dim, d_model = (
        draw(st.integers(1, 6)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 9)),
    )
    rows, length = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    counts = draw(
        st.one_of(
            st.integers(1, n_heads).map(lambda k: [k] * rows),
            st.lists(st.integers(1, n_heads), min_size=rows, max_size=rows),
        )
    )
    seed = draw(st.integers(0, 2**31))
    torch.manual_seed(seed)
    layer = SelectiveAttention(d_model, n_heads, head_dim)
    x = torch.randn(rows, length, d_model)
    order = torch.rand(rows, n_heads).argsort(1)
    bias = None
    if draw(st.booleans()):
        kept = torch.randint(1, length + 1, (rows, 1))
        bias = torch.zeros(rows, length).masked_fill(torch.arange(length) >= kept, -math.inf)
        bias = bias[:, None, None]
    return layer, x, order, torch.tensor(counts), bias


def results(layer: SelectiveAttention, x: Tensor, run: Any) -> list[Tensor]:
    """Output, gradient of the input, gradients of all parameters."""
    x = x.clone().requires_grad_()
    layer.zero_grad()
    y = run(x)
    weights = torch.linspace(-1, 1, y.numel()).view_as(y)
    (y * weights).sum().backward()
    assert x.grad is not None
    return [y.detach(), x.grad, *(p.grad.clone() for p in layer.parameters() if p.grad is not None)]


@given(layers(), st.sampled_from([1, 2**20]), st.sampled_from(["bucket", "loop", "sample", None]))
def test_selected_heads_agree_with_masked_heads(
    case: tuple[SelectiveAttention, Tensor, Tensor, Tensor, Tensor | None],
    cache_bytes: int,
    strategy: Any,
) -> None:
    layer, x, order, k, bias = case
    shared = Shared(bias, torch.ones(0), "hard", plain_attention=False)
    gates = first_of(order, k).float()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models.head_strategy, "CACHE_BYTES_GRADIENT", cache_bytes)
        fast = results(layer, x, lambda t: layer.selected(t, order, k, shared, strategy))
    masked = results(layer, x, lambda t: layer.gated(t, gates, shared))
    # every value is a chain of sums with fewer terms than this
    terms = x.numel() + layer.n_heads * layer.head_dim * 4 + layer.d_model
    for a, b in zip(fast, masked, strict=True):
        assert (a - b).abs().max() <= 4 * terms * EPS * max(1.0, b.abs().max().item())


@given(layers())
def test_all_heads_at_unit_gate_are_the_dense_layer_exactly(
    case: tuple[SelectiveAttention, Tensor, Tensor, Tensor, Tensor | None],
) -> None:
    layer, x, order, _, bias = case
    shared = Shared(bias, torch.ones(0), "hard", plain_attention=False)
    k = torch.full((x.shape[0],), layer.n_heads)
    dense = results(layer, x, lambda t: layer.dense(t, bias, plain=False))
    for run in (
        lambda t: layer.selected(t, order, k, shared),
        lambda t: layer.gated(t, torch.ones_like(order, dtype=t.dtype), shared),
    ):
        for a, b in zip(results(layer, x, run), dense, strict=True):
            assert torch.equal(a, b)


def test_heads_not_selected_get_no_gradient() -> None:
    torch.manual_seed(0)
    layer = SelectiveAttention(6, 3, 2)
    shared = Shared(None, torch.ones(0), "hard", plain_attention=False)
    order = torch.tensor([[1, 0, 2]])
    results(
        layer, torch.randn(1, 4, 6), lambda t: layer.selected(t, order, torch.tensor([1]), shared)
    )
    touched = layer.qkv.weight.grad.view(3, -1).abs().sum(1) > 0  # type: ignore[union-attr]
    assert touched.tolist() == [False, True, False]
    touched = layer.output.weight.grad.view(3, -1).abs().sum(1) > 0  # type: ignore[union-attr]
    assert touched.tolist() == [False, True, False]


@pytest.mark.parametrize("training", [False, True])
def test_whole_model_twins_share_decision_values_and_gradients(training: bool) -> None:
    model = make().train(training)
    spread_budgets(model)
    model.set_progress(0.4)
    ids, mask = batch()
    found = []
    for mode in ("hard", "masked"):
        model.head_mode = mode
        model.reseed(3)
        model.zero_grad()
        output = model(ids, mask)
        loss = output.logits.square().sum() + sum(model.auxiliary_losses(output).values())
        loss.backward()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        found.append((output, {n: g.clone() for n, g in gradients.items()}))
    (hard, hard_gradients), (masked, masked_gradients) = found
    assert len(set(hard.heads.k.flatten().tolist())) > 1
    assert torch.equal(hard.heads.k, masked.heads.k)
    assert torch.equal(hard.heads.selected, masked.heads.selected)
    bound = 200 * GEOMETRY["depth"] * EPS
    assert (hard.logits - masked.logits).abs().max() <= bound
    assert hard_gradients.keys() == masked_gradients.keys()
    for name, gradient in hard_gradients.items():
        scale = max(1.0, gradient.abs().max().item())
        assert (gradient - masked_gradients[name]).abs().max() <= bound * scale, name


def test_equals_the_dense_model_exactly_when_every_head_is_selected() -> None:
    model = make(fixed_k=4).eval()
    dense = Dense(DenseConfig(**GEOMETRY)).eval()
    extra = dense.load_state_dict(model.state_dict(), strict=False)
    assert not extra.missing_keys
    assert all(".controller." in name for name in extra.unexpected_keys)
    ids, mask = batch()
    for mode in ("hard", "masked"):
        model.head_mode = mode
        assert torch.equal(model(ids, mask).logits, dense(ids, mask).logits)


# --- training ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"s_min": 0.6, "s_max": 0.4}, "s_min = 0.6 is greater than s_max = 0.4"),
        ({"s_min": -0.1}, r"s_min must lie in \[0, 1\], not -0.1"),
        ({"s_max": 1.1}, r"s_max must lie in \[0, 1\], not 1.1"),
        ({"rounding": "round"}, "rounding must be 'floor' or 'ceil', not 'round'"),
        ({"fixed_k": 9}, "fixed_k must lie in 1..n_heads = 8, not 9"),
        ({"fixed_k": 0}, "fixed_k must lie in 1..n_heads = 8, not 0"),
        ({"tau_end": 0.0}, "tau_end must be positive"),
        ({"noise_start": -1.0}, "noise_start must not be negative"),
        ({"controller_width": 0}, "controller_width must be at least 1"),
        ({"initial_budget": 0.0}, "initial_budget must lie strictly between 0 and 1, not 0.0"),
        ({"initial_budget": 1.0}, "initial_budget must lie strictly between 0 and 1, not 1.0"),
    ],
)
def test_impossible_settings_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BudgetFormerConfig(**values)
