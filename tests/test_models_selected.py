"""Every way to compute selected heads, against the layer that computes all and masks."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from models import head_strategy
from models.encoder import Shared
from models.head_budget import first_of
from models.head_strategy import Geometry, Strategy, choose, costs, per_part
from models.selected_heads import SelectiveAttention

WAYS = [way for way in get_args(Strategy) if way != "dense"]
N_HEADS, HEAD_DIM, D_MODEL = 6, 4, 10
NARROW = torch.finfo(torch.bfloat16).eps


def layer(seed: int = 0) -> SelectiveAttention:
    torch.manual_seed(seed)
    return SelectiveAttention(D_MODEL, N_HEADS, HEAD_DIM)


def case(
    counts: list[int], lengths: list[int], seed: int = 1
) -> tuple[Tensor, Tensor, Tensor, Shared]:
    """Inputs, order, k and mask; a length of 0 is an input that is all padding."""
    generator = torch.Generator().manual_seed(seed)
    rows, length = len(counts), max(1, *lengths)
    x = torch.randn(rows, length, D_MODEL, generator=generator)
    order = torch.rand(rows, N_HEADS, generator=generator).argsort(1)
    padding = torch.arange(length) >= torch.tensor(lengths).unsqueeze(1)
    hidden = padding & ~padding.all(1, keepdim=True)  # as the encoder does
    bias = torch.zeros(rows, length).masked_fill(hidden, -math.inf)[:, None, None]
    shared = Shared(bias if hidden.any() else None, torch.ones(0), "hard", plain_attention=False)
    return x, order, torch.tensor(counts), shared


def masked(of: SelectiveAttention, x: Tensor, order: Tensor, k: Tensor, shared: Shared) -> Tensor:
    return of.gated(x, first_of(order, k).to(x.dtype), shared)


def tolerance(x: Tensor, expected: Tensor) -> float:
    """Rounding of sums of no more terms than this, of values no larger than the result's."""
    terms = x.shape[1] + N_HEADS * HEAD_DIM + D_MODEL
    return 4 * terms * torch.finfo(torch.float32).eps * max(1.0, expected.abs().max().item())


mixes = st.lists(st.tuples(st.integers(1, N_HEADS), st.integers(0, 7)), min_size=1, max_size=9).map(
    lambda pairs: ([k for k, _ in pairs], [n for _, n in pairs])
)


@given(mixes, st.sampled_from(WAYS), st.booleans(), st.booleans(), st.sampled_from([1, 2**20]))
def test_values_with_padding_and_without_gradients(
    mix: tuple[list[int], list[int]], way: Any, inference: bool, plain: bool, cache: int
) -> None:
    of = layer()
    x, order, k, shared = case(*mix)
    shared = Shared(shared.bias, shared.pooling, "hard", plain_attention=plain)
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode(inference), torch.no_grad():
        patch.setattr(head_strategy, "CACHE_BYTES", cache)
        found = of.selected(x, order, k, shared, way)
        expected = masked(of, x, order, k, shared)
    assert found.shape == x.shape
    assert found.is_inference() == inference
    assert (found - expected).abs().max() <= tolerance(x, expected)


@pytest.mark.parametrize("way", [*WAYS, None])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("counts", [[3], [2, 2, 2], [1, 6, 3, 6, 2, 3]])
def test_autocast_gives_its_type_and_values_within_its_rounding(
    way: Any, grad: bool, counts: list[int]
) -> None:
    of = layer()
    x, order, k, shared = case(counts, [5, 0, 3, 1, 5, 2][: len(counts)])
    exact = masked(of, x, order, k, shared).detach()
    with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16):
        found = of.selected(x, order, k, shared, way)
        twin = masked(of, x, order, k, shared)
    assert found.dtype == twin.dtype == torch.bfloat16
    # input, weights, queries, keys, values, attention weights, heads, output: each rounded once
    bound = 8 * NARROW * max(1.0, exact.abs().max().item())
    assert (found - exact).abs().max() <= bound
    assert (twin - exact).abs().max() <= bound
    if grad:
        torch.autograd.backward(found.float().sum())
        assert all(p.grad is not None and p.grad.isfinite().all() for p in of.parameters())


@pytest.mark.parametrize("way", [*WAYS, None])
def test_one_position_and_one_input(way: Any) -> None:
    of = layer()
    for k in range(1, N_HEADS + 1):
        x, order, counts, shared = case([k], [1])
        found, expected = (
            f.detach()
            for f in (
                of.selected(x, order, counts, shared, way),
                masked(of, x, order, counts, shared),
            )
        )
        assert (found - expected).abs().max() <= tolerance(x, expected)


@pytest.mark.parametrize("way", WAYS)
def test_new_weights_count_at_once(way: Any) -> None:
    of = layer()
    x, order, k, shared = case([2, 5, 1], [4, 4, 4])

    def agree(candidate: SelectiveAttention, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            found = candidate.selected(inputs, order, k, shared, way)
            expected = masked(candidate, inputs, order, k, shared)
        assert found.dtype == inputs.dtype
        assert (found - expected).abs().max() <= tolerance(inputs, expected)
        return found

    first = agree(of, x)
    twin = copy.deepcopy(of)
    optimizer = torch.optim.SGD(of.parameters(), lr=0.5)
    torch.autograd.backward(of.selected(x, order, k, shared, way).square().sum())
    optimizer.step()
    stepped = agree(of, x)
    assert not torch.equal(first, stepped)
    assert torch.equal(agree(twin, x), first)
    twin.load_state_dict(of.state_dict())
    assert torch.equal(agree(twin, x), stepped)
    agree(of.to(torch.float64), x.double())
    with torch.no_grad():
        of.qkv.weight.data.mul_(2)
    assert not torch.equal(agree(of, x.double()).float(), stepped)


def test_the_same_heads_for_all_inputs() -> None:
    of = layer()
    x, _, _, shared = case([1, 1, 1], [4, 2, 3])
    order = torch.tensor([[4, 1, 0, 2, 3, 5]]).expand(3, -1)
    k = torch.tensor([2, 2, 2])
    found = of.of_heads(x, order[0, :2], shared.bias, plain=False)
    expected = masked(of, x, order, k, shared)
    assert (found - expected).abs().max() <= tolerance(x, expected)


# --- the rule ------------------------------------------------------------------------------------


def geometry(**changes: Any) -> Geometry:
    values: dict[str, Any] = {
        "n_heads": 8,
        "head_dim": 32,
        "d_model": 256,
        "length": 128,
        "element_size": 4,
        "on_cpu": True,
        "gradients": False,
    }
    return Geometry(**(values | changes))


@pytest.mark.parametrize(
    ("counts", "changes", "expected"),
    [
        ([], {}, "dense"),
        ([8] * 32, {}, "dense"),
        ([8], {"on_cpu": False}, "dense"),
        ([3], {}, "sample"),
        ([1] * 32, {"d_model": 64, "head_dim": 8, "length": 16}, "bucket"),
        ([4] * 32, {"length": 512}, "sample"),
        ([4] * 32, {"d_model": 512, "head_dim": 64, "length": 32}, "loop"),
        ([*range(1, 9)] * 4, {"d_model": 64, "head_dim": 8, "length": 16}, "loop"),
        ([*range(1, 9)] * 4, {}, "sample"),
        ([*range(1, 9)] * 4, {"on_cpu": False}, "bucket"),
    ],
)
def test_the_rule_follows_the_measurements(
    counts: list[int], changes: dict[str, Any], expected: str
) -> None:
    assert choose(counts, geometry(**changes)) == expected


@given(st.lists(st.integers(1, 8), min_size=1, max_size=40), st.integers(1, 600), st.booleans())
def test_the_rule_takes_the_cheapest(counts: list[int], length: int, gradients: bool) -> None:
    size = geometry(length=length, gradients=gradients)
    expected = costs(counts, size)
    assert all(cost > 0 for cost in expected.values())
    way = choose(counts, size)
    assert (way == "dense") == (min(counts) == 8)
    if way != "dense" and len(counts) > 1:
        assert expected[way] == min(expected.values())


def test_gradients_make_gathering_input_by_input_dear() -> None:
    counts = [4] * 32
    size = geometry(length=256)
    assert choose(counts, size) == "sample"
    assert choose(counts, dataclasses.replace(size, gradients=True)) == "bucket"


def test_a_part_is_never_empty_and_fits_the_cache() -> None:
    size = geometry()
    for k in range(1, 8):
        n = per_part(k, size)
        assert n >= 1
        words = k * size.head_words + size.length * (2 * 256 + 4 * k * 32)
        assert n * words * 4 <= head_strategy.CACHE_BYTES
    assert per_part(7, geometry(d_model=8192, head_dim=1024)) == 1
