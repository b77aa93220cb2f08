"""BudgetFormer's fast path against its twin that masks, and against the dense model."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_budgetformer import EPS, GEOMETRY, batch, make
from torch import Tensor

import models.head_strategy
from models.budgetformer import BudgetAttention, BudgetFormer
from models.dense import Dense
from models.dense_config import DenseConfig
from models.encoder import Shared
from models.head_budget import first_of
from models.selected_heads import SelectiveAttention


def spread_budgets(model: BudgetFormer) -> None:
    """Makes k differ between the inputs of a batch."""
    for module in model.modules():
        if isinstance(module, BudgetAttention):
            module.controller.budget_out.weight.data.mul_(40)
            module.controller.budget_in.weight.data.mul_(4)


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
