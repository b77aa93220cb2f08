"""Mamba-2's state-space core: the sequential scan, and its dual form as products of matrices.

Per head, with step sizes dt > 0 and a rate a < 0, a state S (state, head_dim) and its output are

    S_t = exp(dt_t a) S_(t-1) + B_t (dt_t x_t)^T        y_t = S_t^T C_t

Unrolled, with L_t the running sum of dt a:  y_t = sum over s <= t of (C_t . B_s) exp(L_t - L_s) dt_s x_s,
which is attention with a causal mask, and a decay in place of the softmax (Dao and Gu 2024, "state
space duality"). Inside a chunk of tokens `ssd_chunked` computes it so; from chunk to chunk it hands
on the state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.mixers.bimamba_costs import chunk_length

SSD = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

WIDEST_RANGE = 120.0
"""Largest fall of L inside a chunk for which exp(L_t) and exp(-L_s) are taken apart.

Both are taken relative to the chunk's middle, so that neither leaves exp(-60) to exp(60) and float32
has twelve decades left. Fresh weights stay inside over the 64 tokens of a chunk.
"""


def ssd_scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The recurrence, token by token; for all streams, heads and states at once.

    The state lies as (state, heads * head_dim), because reading it out is then a product of a row
    and a matrix: on CPU torch does that ten times faster than a matrix and a column.

    Args:
        x: (directions, batch, tokens, heads, head_dim).
        dt: (directions, batch, tokens, heads), step sizes, not negative; 0 passes a token over.
        a: (directions, heads), rates, negative.
        b: (directions, batch, tokens, state), what a token writes to; the same for all heads.
        c: (directions, batch, tokens, state), what a token reads.

    Returns:
        y, shaped like x.
    """
    decays = torch.exp(dt * a[:, None, None]).repeat_interleave(x.shape[-1], -1)
    written = (x * dt.unsqueeze(-1)).flatten(3)
    state = x.new_zeros(x.shape[0] * x.shape[1], b.shape[-1], decays.shape[-1])
    tokens = zip(*(part.flatten(0, 1).unbind(1) for part in (decays, written, b, c)), strict=True)
    outputs = []
    for decay, u, b_t, c_t in tokens:
        state = torch.addcmul(state * decay.unsqueeze(1), b_t.unsqueeze(2), u.unsqueeze(1))
        outputs.append(torch.bmm(c_t.unsqueeze(1), state))
    return torch.cat(outputs, 1).view(x.shape)


def ssd_chunked(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, chunk: int | None = None
) -> Tensor:
    """The same by chunks, as products of matrices; see `ssd_scan`.

    Args:
        x: see there, as for the others.
        dt: step sizes.
        a: rates.
        b: what tokens write to.
        c: what tokens read.
        chunk: tokens per chunk, the last one taking what is left; None: `chunk_length`.
    """
    size = chunk_length(x.shape[2]) if chunk is None else min(chunk, x.shape[2])
    steps = (dt * a[:, None, None]).flatten(0, 1)
    shape = x.shape
    x, dt, b, c = (part.flatten(0, 1) for part in (x, dt, b, c))
    missing = -steps.shape[1] % size
    running = pad(steps, (0, 0, 0, missing)).view(len(x), -1, size, a.shape[1]).cumsum(2)
    # compared so that NaN is no narrow range
    narrow = bool((running[:, :, 0] - running[:, :, -1]).max() <= WIDEST_RANGE)
    form = _taken_apart if narrow else _masked
    return form(x, dt, running, b, c).reshape(shape)


def _taken_apart(x: Tensor, dt: Tensor, running: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """With exp(L_t - L_s) as exp(L_t - m) exp(m - L_s), m being the middle of the chunk's range.

    Then the decays scale tokens, not pairs of tokens, and all heads share C B^T. States are kept
    times exp(m) of the chunk that takes them up.

    Args:
        x: (streams, tokens, heads, head_dim).
        dt: (streams, tokens, heads).
        running: (streams, chunks, size, heads), L from the chunk's start on.
        b: (streams, tokens, state).
        c: (streams, tokens, state).
    """
    tokens, size, width = x.shape[1], running.shape[2], x.shape[3]
    first, last = running[:, :, 0], running[:, :, -1]
    middle = ((first + last) / 2).detach()  # the result does not depend on it
    relative = (running - middle.unsqueeze(2)).flatten(1, 2)[:, :tokens]
    after = torch.exp(relative).unsqueeze(3)
    before = (torch.exp(-relative) * dt).unsqueeze(3)
    handed = torch.exp(last[:, :-1] - middle[:, :-1] + middle[:, 1:])
    kept = handed.repeat_interleave(width, 2).unsqueeze(2).unbind(1)
    state: Tensor | None = None
    outputs = []
    chunks = zip(*(torch.split(part, size, 1) for part in (x, before, after, b, c)), strict=True)
    for i, (x_i, before_i, after_i, b_i, c_i) in enumerate(chunks):
        u = (x_i * before_i).flatten(2)
        b_t = b_i.transpose(1, 2)
        y = torch.bmm(torch.bmm(c_i, b_t).tril_(), u)
        if state is not None:
            y = _plus_product(y, c_i, state)
        outputs.append(y.view(x_i.shape) * after_i)
        if i < len(kept):
            total = torch.bmm(b_t, u) if state is None else _plus_product(state, b_t, u)
            state = total * kept[i]
    return torch.cat(outputs, 1)


def _plus_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Total + left @ right, in total's place if no gradient is wanted.

    Not by `baddbmm_`, which counters of FLOPs do not know.
    """
    if torch.is_grad_enabled():
        return torch.baddbmm(total, left, right)
    return torch.baddbmm(total, left, right, out=total)


def _masked(x: Tensor, dt: Tensor, running: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """With exp(L_t - L_s) per pair of tokens and head: no exponent is above 0, however fast the decay.

    Its arguments are those of `_taken_apart`.
    """
    size, width = running.shape[2], x.shape[3]
    u = x * dt.unsqueeze(3)
    state: Tensor | None = None
    outputs = []
    chunks = zip(
        *(torch.split(part, size, 1) for part in (u, b, c)), running.unbind(1), strict=True
    )
    for i, (u_i, b_i, c_i, padded) in enumerate(chunks):
        sums = padded[:, : u_i.shape[1]].transpose(1, 2)
        b_t = b_i.transpose(1, 2)
        # above the diagonal the difference is positive; C B^T is zero there
        decays = (sums.unsqueeze(3) - sums.unsqueeze(2)).clamp(max=0.0).exp()
        weights = decays * torch.bmm(c_i, b_t).tril_().unsqueeze(1)
        y = (weights @ u_i.transpose(1, 2)).transpose(1, 2)
        if state is not None:
            carried = torch.bmm(c_i, state).view(u_i.shape)
            y = torch.addcmul(y, carried, sums.exp().transpose(1, 2).unsqueeze(3))
        outputs.append(y)
        if i + 1 < running.shape[1]:
            last = sums[:, :, -1:]
            left = (u_i * (last - sums).exp().transpose(1, 2).unsqueeze(3)).flatten(2)
            added = torch.bmm(b_t, left)
            kept = last.exp().transpose(1, 2).repeat_interleave(width, 2)
            state = added if state is None else torch.addcmul(added, state, kept)
    return torch.cat(outputs, 1)


def ssd_kernel(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The same by `mamba_ssm`'s Triton kernels, both directions in one call; see `ssd_scan`.

    A direction is a group of heads with a B and a C of its own there.
    """
    fused = fused_kernel()
    if fused is None:
        raise ValueError("mamba_ssm cannot be imported: compute with `ssd_chunked`")
    directions, batch, tokens, heads, width = x.shape
    y: Tensor = fused(
        x.permute(1, 2, 0, 3, 4).reshape(batch, tokens, directions * heads, width),
        dt.permute(1, 2, 0, 3).reshape(batch, tokens, directions * heads),
        a.flatten(),
        b.permute(1, 2, 0, 3).contiguous(),
        c.permute(1, 2, 0, 3).contiguous(),
        chunk_size=KERNEL_CHUNK,
    )
    return y.view(batch, tokens, directions, heads, width).permute(2, 0, 1, 3, 4)


KERNEL_CHUNK = 128
"""A power of two, as the kernels want it; they choose tiles themselves inside it."""


@lru_cache(maxsize=1)
def fused_kernel() -> Callable[..., Any] | None:
    """`mamba_ssm`'s function, or None where the package is not installed."""
    try:
        from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    except ImportError:
        return None
    kernel: Callable[..., Any] = mamba_chunk_scan_combined
    return kernel


def choose(device: torch.device, dtype: torch.dtype, *, plain: bool) -> SSD:
    """The form to compute with.

    `mamba_ssm`'s kernels are for CUDA alone, where they save the traffic between the products. They
    round float32 factors to TF32, so float32 goes there only where torch may do the same.

    Args:
        device: where x is.
        dtype: of x.
        plain: the scan, wherever x is.
    """
    if plain:
        return ssd_scan
    if device.type == "cuda" and dtype is not torch.float64 and fused_kernel() is not None:
        exact = dtype is torch.float32 and torch.get_float32_matmul_precision() == "highest"
        if not exact:
            return ssd_kernel
    return ssd_chunked
