"""BudgetFormer's selection: how many heads, which ones, and which settings are refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_budgetformer import EPS, batch, make

from models.budgetformer_config import BudgetFormerConfig
from models.head_budget import HeadBudget, best_first, first_of, heads_for


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
