"""The mixers' formulas against counters and modules that know nothing of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from models.mixers.build import make_mixer
from models.mixers.costs import cost, parameters
from models.mixers.names import KINDS

GEOMETRIES = [(192, 3, 64, 20), (24, 4, 6, 13), (8, 1, 8, 1)]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in KINDS),
    *((kind, {"bidirectional": False}) for kind in KINDS if KINDS[kind].one_way),
    ("conv", {"kernel_size": 3}),
    ("bimamba", {"state": 16, "conv": 3}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@pytest.mark.parametrize(("d_model", "n_heads", "head_dim", "tokens"), GEOMETRIES)
def test_macs_agree_with_what_torch_dispatches(
    kind: str, options: dict[str, Any], d_model: int, n_heads: int, head_dim: int, tokens: int
) -> None:
    mixer = make_mixer(kind, d_model, n_heads, head_dim, **options).eval()
    # the state space's formula is of the chunks that run, which are matrix products themselves
    mixer.plain = kind != "bimamba"
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        mixer(torch.randn(1, tokens, d_model))
    stated = cost(kind, tokens, d_model, n_heads, head_dim, **options)
    assert counter.get_total_flops() / 2 == pytest.approx(stated.macs, rel=0.01)


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@pytest.mark.parametrize(("d_model", "n_heads", "head_dim", "tokens"), GEOMETRIES)
def test_parameters_agree_with_the_module(
    kind: str, options: dict[str, Any], d_model: int, n_heads: int, head_dim: int, tokens: int
) -> None:
    del tokens
    mixer = make_mixer(kind, d_model, n_heads, head_dim, **options)
    held = sum(p.numel() for p in mixer.parameters())
    assert parameters(kind, d_model, n_heads, head_dim, **options) == held


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("attention", 148_224), ("bilstm", 298_560), ("bilstm-half", 112_320), ("bimamba", 313_426)],
)
def test_parameters_at_the_smallest_vision_transformer(kind: str, expected: int) -> None:
    """What follows from the shapes in the authors' code, and by hand for the half."""
    assert sum(p.numel() for p in make_mixer(kind, 192, 3).parameters()) == expected


def test_core_and_projections_by_hand() -> None:
    """Two tokens, width 4, two heads of 2."""
    half = cost("bilstm-half", 2, 4, 2, 2)
    # 2 tokens x 2 heads x 2 ways x 4 gates x state of 1 x (2 inputs + 1 state)
    assert half.core == 96
    assert half.projections == 2 * 16
    full = cost("bilstm", 2, 4, 2, 2)
    assert full.core == 2 * 2 * 2 * 4 * 2 * (2 + 2)
    assert full.projections == 2 * (16 + 2 * (4 * 2) + 16)
    gru = cost("bigru", 2, 4, 2, 2)
    assert gru.core == full.core * 3 / 4
    assert gru.projections == full.projections
    assert cost("conv", 2, 4, 2, 2).core == 2 * 4 * 7
    assert cost("linear-attention", 2, 4, 2, 2).core == 2 * 4 * 2 * 2 + 2 * 4


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("attention", "bimamba")])
def test_all_but_attention_are_linear_in_the_tokens(kind: str) -> None:
    one, many = cost(kind, 100, 192, 3, 64), cost(kind, 1000, 192, 3, 64)
    assert many.macs == pytest.approx(10 * one.macs)
    assert many.elementwise == pytest.approx(10 * one.elementwise)


def test_identity_costs_nothing() -> None:
    assert cost("identity", 197, 192, 3, 64).macs == 0
    assert cost("identity", 197, 192, 3, 64).elementwise == 0
    assert parameters("identity", 192, 3, 64) == 0


def test_names_and_costs_need_no_torch() -> None:
    code = (
        "import sys; from models.mixers.costs import cost, parameters; "
        "from models.mixers.names import KINDS, check_layers; "
        "[(cost(k, 9, 8, 2, 4), parameters(k, 8, 2, 4)) for k in KINDS]; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
