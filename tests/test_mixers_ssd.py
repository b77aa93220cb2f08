"""The state-space core: its forms against the recurrence, gradients, kernels and speed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from models.mixers import ssd

N_HEADS, HEAD_DIM, STATE = 3, 4, 8
FORMS = ("_taken_apart", "_masked")


def parts(
    tokens: int, batch: int = 2, seed: int = 0, fastest: float = 1.0, dtype: Any = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """x, dt, a, b, c; no step decays by more than exp(-fastest)."""
    made = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(2, *shape, generator=made, dtype=dtype)

    x = normal(batch, tokens, N_HEADS, HEAD_DIM)
    dt = torch.rand(2, batch, tokens, N_HEADS, generator=made, dtype=dtype)
    a = -fastest * torch.rand(2, N_HEADS, generator=made, dtype=dtype)
    return x, dt, a, normal(batch, tokens, STATE), normal(batch, tokens, STATE)


def by_definition(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The recurrence as it is written, states as (heads, head_dim, state)."""
    state = x.new_zeros(*x.shape[:2], *x.shape[3:], b.shape[-1])
    outputs = []
    for t in range(x.shape[2]):
        step = dt[:, :, t, :, None]
        decay = torch.exp(step * a[:, None, :, None])
        state = decay[..., None] * state
        state = state + (step * x[:, :, t])[..., None] * b[:, :, t, None, None]
        outputs.append((state @ c[:, :, t, None, :, None]).squeeze(-1))
    return torch.stack(outputs, 2)


def only(form: str, patch: pytest.MonkeyPatch) -> None:
    for other in FORMS:
        patch.setattr(ssd, other, getattr(ssd, form))


@settings(deadline=None)
@given(
    tokens=st.integers(1, 40),
    chunk=st.integers(1, 45),
    batch=st.integers(1, 3),
    fastest=st.sampled_from([0.01, 1.0, 4.0, 50.0, 500.0]),
    form=st.sampled_from([*FORMS, "chosen"]),
)
def test_every_form_is_the_recurrence(
    tokens: int, chunk: int, batch: int, fastest: float, form: str
) -> None:
    exact = parts(tokens, batch, seed=tokens, fastest=fastest, dtype=torch.float64)
    expected = by_definition(*exact)
    rounded = [part.float() for part in exact]
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        assume(form != "_taken_apart" or fastest * min(chunk, tokens) <= ssd.WIDEST_RANGE)
        if form != "chosen":
            only(form, patch)
        found = ssd.ssd_chunked(*rounded, chunk=chunk)
    scanned = ssd.ssd_scan(*rounded)
    limit = 1e-4 * max(1.0, expected.abs().max().item())
    assert found.shape == scanned.shape == expected.shape
    assert (found - expected).abs().max() <= limit
    assert (scanned - expected).abs().max() <= limit
    with torch.no_grad():
        default = ssd.ssd_chunked(*rounded)
    assert (default - expected).abs().max() <= limit


@pytest.mark.parametrize("tokens", [1, 2, 63, 64, 65, 100, 101, 130, 197, 1600])
@pytest.mark.parametrize("fastest", [0.5, 30.0])
def test_chunks_of_the_lengths_in_use(tokens: int, fastest: float) -> None:
    exact = parts(tokens, fastest=fastest, dtype=torch.float64)
    expected = by_definition(*exact)
    found = ssd.ssd_chunked(*(part.float() for part in exact))
    assert (found - expected).abs().max() <= 1e-4 * max(1.0, expected.abs().max().item())


@pytest.mark.parametrize("form", [*FORMS, "scan"])
@pytest.mark.parametrize(("tokens", "chunk"), [(1, 4), (5, 8), (7, 3), (8, 4)])
def test_gradients_in_double_precision(
    form: str, tokens: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = parts(tokens, batch=1, dtype=torch.float64)
    inputs = tuple(part[..., :2, :2] if i == 0 else part for i, part in enumerate(inputs))
    x, dt, a, b, c = inputs
    leaves = [x, dt[..., :2], a[:, :2], b[..., :3], c[..., :3]]
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    if form == "scan":
        assert torch.autograd.gradcheck(ssd.ssd_scan, leaves)
        return
    only(form, monkeypatch)
    assert torch.autograd.gradcheck(lambda *args: ssd.ssd_chunked(*args, chunk=chunk), leaves)


def test_decays_too_fast_to_take_apart_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = parts(30, fastest=1.0), parts(30, fastest=500.0)
    called: list[str] = []
    for name in FORMS:
        real = getattr(ssd, name)
        monkeypatch.setattr(
            ssd, name, lambda *args, name=name, real=real: called.append(name) or real(*args)
        )
    ssd.ssd_chunked(*slow)
    leaves = [part.requires_grad_() for part in fast]
    y = ssd.ssd_chunked(*leaves)
    assert called == ["_taken_apart", "_masked"]
    y.sum().backward()
    assert y.isfinite().all()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


def test_nan_stays_visible() -> None:
    x, *others = parts(12)
    others[0][0, 0, 5] = float("nan")
    assert ssd.ssd_chunked(x, *others).isnan().any()


def test_the_masked_form_does_the_same_products(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    counts = []
    for form in FORMS:
        with monkeypatch.context() as patch, torch.no_grad():
            only(form, patch)
            counter = FlopCounterMode(display=False)
            with counter:
                ssd.ssd_chunked(*parts(130, batch=1, fastest=0.1))
            counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


# mamba_ssm's kernels


def test_the_kernels_get_what_they_want(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers' fallback for that function has its signature."""
    from transformers.models.mamba2.modeling_mamba2 import mamba2_chunk_scan

    monkeypatch.setattr(ssd, "fused_kernel", lambda: mamba2_chunk_scan)
    inputs = parts(13, batch=3)
    torch.testing.assert_close(ssd.ssd_kernel(*inputs), ssd.ssd_scan(*inputs), rtol=1e-4, atol=1e-5)


def test_where_the_kernels_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(ssd, "fused_kernel", lambda: len)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert ssd.choose(cuda, torch.float32, plain=False) is ssd.ssd_kernel
    assert ssd.choose(cuda, torch.float32, plain=True) is ssd.ssd_scan
    assert ssd.choose(cuda, torch.float64, plain=False) is ssd.ssd_chunked
    assert ssd.choose(cpu, torch.float32, plain=False) is ssd.ssd_chunked
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "highest")
    assert ssd.choose(cuda, torch.float32, plain=False) is ssd.ssd_chunked
    assert ssd.choose(cuda, torch.bfloat16, plain=False) is ssd.ssd_kernel
    monkeypatch.setattr(ssd, "fused_kernel", lambda: None)
    assert ssd.choose(cuda, torch.bfloat16, plain=False) is ssd.ssd_chunked


def test_the_kernels_are_optional() -> None:
    try:
        import mamba_ssm  # noqa: F401
    except ImportError:
        assert ssd.fused_kernel() is None
        with pytest.raises(ValueError, match="mamba_ssm"):
            ssd.ssd_kernel(*parts(3))
