"""BiMamba against transformers, against its twin and single inputs, and its costs by counters."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from benchmarks.meters.flop_handlers import HANDLERS
from models.mixers import bimamba_costs as costs
from models.mixers.bimamba import BiMamba

D_MODEL, N_HEADS, HEAD_DIM, STATE, CONV = 12, 3, 4, 8, 4
EPS = torch.finfo(torch.float32).eps


def mixer(seed: int = 0, **options: Any) -> BiMamba:
    torch.manual_seed(seed)
    made = BiMamba(D_MODEL, N_HEADS, HEAD_DIM, **{"state": STATE, **options})
    with torch.no_grad():
        for way in made.directions:
            way.D.normal_()
            way.norm.weight.normal_()
    return made.eval()


def padding(lengths: list[int], tokens: int) -> Tensor:
    return torch.arange(tokens) >= torch.tensor(lengths)[:, None]


def test_parameters() -> None:
    made = BiMamba(192, 3, 64)
    count = sum(p.numel() for p in made.parameters())
    assert count == 313_426 == costs.parameters(192, 3, 64, 128, 4, 2)
    for directions in (1, 2):
        made = mixer(conv=3, bidirectional=directions == 2)
        expected = costs.parameters(D_MODEL, N_HEADS, HEAD_DIM, STATE, 3, directions)
        assert sum(p.numel() for p in made.parameters()) == expected


def reference(seed: int) -> nn.Module:
    """transformers' mixer with random weights of every kind."""
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        hidden_size=D_MODEL,
        num_heads=N_HEADS,
        head_dim=HEAD_DIM,
        state_size=STATE,
        expand=1,
        n_groups=1,
        conv_kernel=CONV,
        chunk_size=5,
        num_hidden_layers=1,
    )
    torch.manual_seed(seed)
    made = Mamba2Mixer(config, layer_idx=0)
    with torch.no_grad():
        for name in ("dt_bias", "A_log", "D", "conv1d.bias", "norm.weight"):
            made.get_parameter(name).normal_()
    return made.eval()


def take(way: nn.Module, theirs: nn.Module) -> None:
    state = {k: v for k, v in theirs.state_dict().items() if not k.startswith("out_proj")}
    way.load_state_dict(state, strict=True)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("tokens", [1, 3, 17])
def test_one_way_equals_transformers(tokens: int, plain: bool) -> None:
    theirs, ours = reference(1), mixer(bidirectional=False)
    take(ours.directions[0], theirs)
    with torch.no_grad():
        ours.head_proj.copy_(torch.eye(HEAD_DIM).expand_as(ours.head_proj))
        ours.proj.weight.copy_(theirs.get_parameter("out_proj.weight"))
        ours.proj.bias.zero_()
    ours.plain = plain
    x = torch.randn(2, tokens, D_MODEL)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)


def test_both_ways_equal_two_of_transformers() -> None:
    forward, backward, ours = reference(1), reference(2), mixer()
    for way, theirs in zip(ours.directions, (forward, backward), strict=True):
        take(way, theirs)
        theirs.out_proj = nn.Identity()
    x = torch.randn(2, 17, D_MODEL)
    with torch.no_grad():
        both = torch.stack([forward(x), backward(x.flip(1)).flip(1)])
        by_head = both.unflatten(3, (N_HEADS, HEAD_DIM))
        weights = ours.head_proj.unflatten(1, (2, HEAD_DIM))
        expected = torch.einsum("dbnhp,hdpq->bnhq", by_head, weights).flatten(2)
        torch.testing.assert_close(ours.heads(x), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours(x), ours.proj(expected), rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=50)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    extra=st.integers(0, 3),
    bidirectional=st.booleans(),
    plain=st.booleans(),
)
def test_padding_changes_nothing(
    lengths: list[int], extra: int, bidirectional: bool, plain: bool
) -> None:
    ours = mixer(bidirectional=bidirectional)
    ours.plain = plain
    tokens = max(1, *lengths) + extra
    made = torch.Generator().manual_seed(tokens)
    x = torch.randn(len(lengths), tokens, D_MODEL, generator=made)
    hidden = padding(lengths, tokens)
    x[hidden] = float("nan")
    x.requires_grad_()
    found = ours.heads(x, hidden)
    found.sum().backward()
    assert x.grad is not None
    for row, length in enumerate(lengths):
        assert (found[row, length:] == 0).all()
        assert (x.grad[row, length:] == 0).all()
        if length:
            with torch.no_grad():
                alone = ours.heads(x[row : row + 1, :length])
            torch.testing.assert_close(found[row, :length], alone[0], rtol=1e-4, atol=1e-5)
    assert all(p.grad is None or p.grad.isfinite().all() for p in ours.parameters())


def test_a_token_after_padding_is_refused() -> None:
    hidden = torch.tensor([[False, True, False]])
    with pytest.raises(ValueError, match="end of each sequence"):
        mixer().heads(torch.zeros(1, 3, D_MODEL), hidden)


@pytest.mark.parametrize("tokens", [1, 9, 130])
def test_plain_twin(tokens: int) -> None:
    """Values within 1e-4; gradients within the rounding of as many terms as they sum up."""
    fast = mixer()
    plain = copy.deepcopy(fast)
    plain.plain = True
    x = torch.randn(3, tokens, D_MODEL)
    towards = torch.randn(3, tokens, D_MODEL)
    (fast(x) * towards).sum().backward()
    (plain(x) * towards).sum().backward()
    with torch.no_grad():
        assert (fast(x) - plain(x)).abs().max() <= 1e-4
    terms = 3 * tokens * (D_MODEL + STATE + HEAD_DIM)
    for (name, one), other in zip(fast.named_parameters(), plain.parameters(), strict=True):
        assert one.grad is not None, name
        assert other.grad is not None
        limit = 4 * terms * EPS * max(1.0, other.grad.abs().max().item())
        assert (one.grad - other.grad).abs().max() <= limit, name


def test_one_way_is_causal_and_both_ways_are_not() -> None:
    x = torch.randn(1, 10, D_MODEL)
    changed = x.clone()
    changed[:, 6] += 1.0
    for bidirectional in (False, True):
        ours = mixer(bidirectional=bidirectional)
        with torch.no_grad():
            differs = (ours(x) != ours(changed)).any(-1)[0].tolist()
        assert differs[6:] == [True] * 4
        assert differs[:6] == [bidirectional] * 6


def test_reversed_tokens_and_exchanged_directions_give_the_reverse() -> None:
    ours = mixer()
    other = copy.deepcopy(ours)
    other.directions = nn.ModuleList(reversed(list(other.directions)))
    with torch.no_grad():
        other.head_proj.copy_(ours.head_proj.roll(HEAD_DIM, 1))
        x = torch.randn(2, 11, D_MODEL)
        torch.testing.assert_close(other(x.flip(1)), ours(x).flip(1), rtol=1e-4, atol=1e-5)


def test_captures_what_comes_before_the_output_projection() -> None:
    ours = mixer()
    ours.capture = True
    y = ours(torch.randn(2, 5, D_MODEL))
    assert ours.captured is not None
    torch.testing.assert_close(ours.proj(ours.captured), y)


def test_a_head_need_not_be_a_part_of_the_width() -> None:
    made = BiMamba(10, 3, 4, state=8)
    assert made(torch.randn(2, 5, 10)).shape == (2, 5, 10)


@pytest.mark.parametrize("bad", [{"state": 0}, {"conv": 0}, {"state": 2.5}])
def test_bad_options(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} of the mixer 'bimamba'"):
        BiMamba(D_MODEL, N_HEADS, HEAD_DIM, **bad)


# what is counted


@pytest.mark.parametrize("tokens", [1, 50, 65, 100, 101, 197])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_counters_agree_with_the_formula(tokens: int, bidirectional: bool) -> None:
    from fvcore.nn import FlopCountAnalysis
    from torch.utils.flop_counter import FlopCounterMode

    directions = 1 + bidirectional
    made = BiMamba(48, 3, 16, bidirectional=bidirectional).eval()
    x = torch.randn(1, tokens, 48)
    formula = costs.core(tokens, 3, 16, 128, 4, directions) + costs.projections(
        tokens, 48, 3, 16, 128, directions
    )
    with torch.no_grad():
        counter = FlopCounterMode(display=False)
        with counter:
            made(x)
        analysis = FlopCountAnalysis(made, x)
        analysis.set_op_handle(**HANDLERS)
        analysis.unsupported_ops_warnings(False).tracer_warnings("none")
        by_operator = analysis.by_operator()
    assert counter.get_total_flops() / 2 == formula
    # fast decays are computed in another form, with as many products under another name
    assert set(by_operator) <= {"bmm", "baddbmm", "matmul", "conv", "linear"}
    assert sum(by_operator.values()) == formula


def test_chunks_are_even_and_cover_the_sequence() -> None:
    assert costs.chunk_length(50) == 50
    assert costs.chunk_length(197) == 50
    assert costs.chunk_length(1600) == 64
    for tokens in range(1, 1000):
        size = costs.chunk_length(tokens)
        n = -(-tokens // size)
        assert n * size - tokens < n
        assert size <= costs.LONGEST_SINGLE


def test_the_scan_does_less_but_not_much() -> None:
    geometry = (3, 64, 128, 4, 2)
    assert costs.scan(50, *geometry) > costs.core(50, *geometry)
    for tokens in (197, 1600):
        assert 1.0 < costs.core(tokens, *geometry) / costs.scan(tokens, *geometry) < 1.5


def test_costs_need_no_torch() -> None:
    code = "import sys, models.mixers.bimamba_costs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
