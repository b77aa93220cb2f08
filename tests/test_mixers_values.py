"""What each token mixer computes: padding, directions, and references that know nothing of it."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from models.mixers.bigru import BiGRU
from models.mixers.bilstm import BiLSTM, HalfBiLSTM
from models.mixers.build import make_mixer
from models.mixers.conv import Conv
from models.mixers.interface import TokenMixer
from models.mixers.linear_attention import LinearAttention
from models.mixers.names import KINDS
from models.mixers.recurrent import MultiHeadRecurrence

D_MODEL, N_HEADS, HEAD_DIM = 12, 3, 4
RECURRENT = ("bilstm", "bilstm-half", "bigru")
CASES: list[tuple[str, dict[str, Any]]] = [(kind, {}) for kind in KINDS] + [
    (kind, {"bidirectional": False}) for kind in KINDS if KINDS[kind].one_way
]


def make(kind: str, seed: int = 0, **options: Any) -> TokenMixer:
    torch.manual_seed(seed)
    return make_mixer(kind, D_MODEL, N_HEADS, HEAD_DIM, **options)


def recurrent(kind: str, **options: Any) -> MultiHeadRecurrence:
    return cast(MultiHeadRecurrence, make(kind, **options))


def inputs(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def padding(lengths: list[int], tokens: int) -> Tensor:
    return torch.arange(tokens) >= torch.tensor(lengths)[:, None]


def close(found: Tensor, expected: Tensor, terms: int) -> None:
    """Equal up to the rounding of `terms` additions of values no larger than the result's."""
    bound = 4 * terms * torch.finfo(expected.dtype).eps * max(1.0, expected.abs().max().item())
    assert (found - expected).abs().max().item() <= bound


def gradients(mixer: TokenMixer, x: Tensor, mask: Tensor | None = None) -> list[Tensor]:
    """Of a smooth function of the output, for the input and then for each parameter."""
    x = x.clone().requires_grad_()
    mixer.zero_grad()
    mixer(x, mask).sin().sum().backward()
    return [cast(Tensor, x.grad), *(cast(Tensor, p.grad) for p in mixer.parameters())]


@pytest.mark.parametrize(("kind", "options"), [case for case in CASES if case[0] != "identity"])
@pytest.mark.parametrize("plain", [False, True])
@settings(max_examples=8)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), extra=st.integers(0, 2))
def test_padding_changes_nothing(
    kind: str, options: dict[str, Any], plain: bool, lengths: list[int], extra: int
) -> None:
    mixer = make(kind, **options)
    mixer.plain = plain
    tokens = max(lengths) + extra
    mask = padding(lengths, tokens)
    x = inputs(len(lengths), tokens, D_MODEL).requires_grad_()
    heads = mixer.heads(x, mask)
    assert heads.shape == (len(lengths), tokens, N_HEADS * HEAD_DIM)
    assert not heads[mask].any()
    together = mixer(x, mask)
    (of_padded,) = torch.autograd.grad(together[~mask].sin().sum(), x)
    assert not of_padded[mask].any()
    for row, length in enumerate(lengths):
        alone_x = x[row : row + 1, :length].detach().requires_grad_()
        alone = mixer(alone_x)
        close(together[row, :length], alone[0], tokens * D_MODEL)
        (of_alone,) = torch.autograd.grad(alone.sin().sum(), alone_x)
        close(of_padded[row, :length], of_alone[0], tokens * D_MODEL)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_an_input_that_is_all_padding_is_finite(kind: str, options: dict[str, Any]) -> None:
    mixer, x = make(kind, **options), inputs(2, 5, D_MODEL)
    found = gradients(mixer, x, padding([0, 3], 5)) if list(mixer.parameters()) else []
    assert all(gradient.isfinite().all() for gradient in found)
    assert not mixer.heads(x, padding([0, 3], 5))[0].any()


@pytest.mark.parametrize("kind", [*RECURRENT, "conv", "mean", "linear-attention"])
def test_padding_before_a_token_is_refused(kind: str) -> None:
    mask = torch.tensor([[False, True, False], [False, False, False]])
    with pytest.raises(ValueError, match="padding must be at the end"):
        make(kind)(inputs(2, 3, D_MODEL), mask)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].one_way])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_only_one_way_is_blind_to_what_follows(kind: str, bidirectional: bool) -> None:
    mixer, x = make(kind, bidirectional=bidirectional), inputs(1, 7, D_MODEL)
    changed = x.clone()
    changed[:, 4] += 1.0
    before, after = mixer(x)[0], mixer(changed)[0]
    moved = [not torch.allclose(a, b, atol=1e-6) for a, b in zip(before, after, strict=True)]
    assert moved[4:] == [True] * 3
    assert moved[:4] == [bidirectional] * 4


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("lengths", [None, [6, 1, 4]])
@pytest.mark.parametrize(
    ("training", "dtype"), [(True, torch.float32), (False, torch.float32), (True, torch.float64)]
)
def test_recurrences_agree_with_their_definition(
    kind: str, bidirectional: bool, lengths: list[int] | None, training: bool, dtype: torch.dtype
) -> None:
    mixer = make(kind, bidirectional=bidirectional).train(training).to(dtype)
    x = inputs(3, 6, D_MODEL).to(dtype)
    mask = None if lengths is None else padding(lengths, 6)
    values, found = mixer(x, mask), gradients(mixer, x, mask)
    mixer.plain = True
    expected = gradients(mixer, x, mask)
    close(values, mixer(x, mask), 6 * D_MODEL)
    for gradient, wanted in zip(found, expected, strict=True):
        close(gradient, wanted, 3 * 6 * D_MODEL)
    with torch.inference_mode():
        mixer.plain = False
        close(mixer(x, mask), values, 6 * D_MODEL)


def torch_networks(mixer: MultiHeadRecurrence) -> list[nn.LSTM | nn.GRU]:
    """Torch's own module for each head, with the mixer's weights."""
    made = []
    for head in range(mixer.n_heads):
        of = nn.LSTM if mixer.n_gates == 4 else nn.GRU
        network: nn.LSTM | nn.GRU = of(
            HEAD_DIM, mixer.hidden, batch_first=True, bidirectional=mixer.directions == 2
        )
        for way, suffix in enumerate(["", "_reverse"][: mixer.directions]):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                own = getattr(mixer, name)[head, way]
                network.get_parameter(f"{name}_l0{suffix}").data.copy_(own)
        made.append(network)
    return made


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("plain", [True, False])
def test_recurrences_agree_with_torch_modules(kind: str, bidirectional: bool, plain: bool) -> None:
    mixer, x = recurrent(kind, bidirectional=bidirectional), inputs(2, 8, D_MODEL)
    mixer.plain = plain
    parts = (x if mixer.pre is None else mixer.pre(x)).chunk(N_HEADS, -1)
    expected = [net(part)[0] for net, part in zip(torch_networks(mixer), parts, strict=True)]
    if mixer.head_proj is not None:
        weight, bias = mixer.head_proj.weight, mixer.head_proj.bias
        expected = [h @ weight[i].t() + bias[i] for i, h in enumerate(expected)]
    close(mixer.heads(x), torch.cat(expected, -1), 8 * D_MODEL)


def test_bilstm_is_the_dense_one_with_block_diagonal_weights() -> None:
    """The form of the authors' code: one LSTM of full width whose weights are masked by head."""
    mixer, x = BiLSTM(D_MODEL, N_HEADS, HEAD_DIM), inputs(2, 7, D_MODEL)
    dense = nn.LSTM(D_MODEL, D_MODEL, batch_first=True, bidirectional=True)
    combine = nn.Linear(2 * D_MODEL, D_MODEL)
    with torch.no_grad():
        combine.weight.zero_()
        combine.bias.copy_(mixer.head_proj.bias.flatten())  # type: ignore[union-attr]
        for way, suffix in enumerate(["", "_reverse"]):
            for name in ("weight_ih", "weight_hh"):
                whole = dense.get_parameter(f"{name}_l0{suffix}").zero_()
                by_gate = whole.view(4, N_HEADS, HEAD_DIM, N_HEADS, HEAD_DIM)
                for head in range(N_HEADS):
                    own = getattr(mixer, name)[head, way]
                    by_gate[:, head, :, head] = own.view(4, HEAD_DIM, HEAD_DIM)
            for name in ("bias_ih", "bias_hh"):
                own = getattr(mixer, name)[:, way].view(N_HEADS, 4, HEAD_DIM).transpose(0, 1)
                dense.get_parameter(f"{name}_l0{suffix}").copy_(own.reshape(-1))
        for head, weight in enumerate(mixer.head_proj.weight):  # type: ignore[union-attr]
            rows = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
            forward, backward = weight.chunk(2, -1)
            combine.weight[rows, rows] = forward
            combine.weight[rows, D_MODEL + rows.start : D_MODEL + rows.stop] = backward
    assert mixer.pre is not None
    expected = mixer.proj(combine(dense(mixer.pre(x))[0]))  # type: ignore[misc]
    close(mixer(x), expected, 7 * 4 * D_MODEL)


@pytest.mark.parametrize("of", [BiLSTM, HalfBiLSTM, BiGRU])
def test_fresh_weights_are_as_torch_draws_them(of: Any) -> None:
    torch.manual_seed(0)
    mixer = of(192, 3, 64)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        drawn, bound = getattr(mixer, name), mixer.hidden**-0.5
        assert 0.98 * bound < drawn.abs().max() <= bound
        assert abs(drawn.std().item() * math.sqrt(3) / bound - 1) < 0.05


@pytest.mark.parametrize("kind", ["bilstm", "bigru", "bimamba"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_fresh_maps_per_head_are_drawn_by_the_width_that_they_read(
    kind: str, bidirectional: bool
) -> None:
    torch.manual_seed(0)
    made: Any = make_mixer(kind, 192, 3, 64, bidirectional=bidirectional).head_proj
    bound = (128 if bidirectional else 64) ** -0.5
    for drawn in [made] if isinstance(made, Tensor) else list(made.parameters()):
        assert 0.97 * bound < drawn.abs().max() <= bound


def test_conv_is_a_weighted_sum_of_neighbours() -> None:
    mixer = Conv(D_MODEL, N_HEADS, HEAD_DIM, kernel_size=3)
    x = inputs(2, 6, D_MODEL)
    values = mixer.value(x)
    expected = mixer.conv.bias.expand_as(values).clone()  # type: ignore[union-attr]
    for t in range(6):
        for tap in range(3):
            if 0 <= t + tap - 1 < 6:
                expected[:, t] += mixer.conv.weight[:, 0, 0, tap] * values[:, t + tap - 1]
    close(mixer.heads(x), expected, 3 * D_MODEL)


def test_linear_attention_is_attention_with_other_weights() -> None:
    mixer = LinearAttention(D_MODEL, N_HEADS, HEAD_DIM)
    x = inputs(2, 6, D_MODEL)
    found = mixer.heads(x)
    query, key, value = mixer.qkv(x).chunk(3, -1)
    for head in range(N_HEADS):
        of_head = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        q, k, v = (part[..., of_head] for part in (query, key, value))
        weights = (nn.functional.elu(q) + 1) @ (nn.functional.elu(k) + 1).transpose(1, 2)
        expected = (weights / weights.sum(-1, keepdim=True)) @ v
        close(found[..., of_head], expected, 6 * D_MODEL)


def test_mean_gives_every_token_the_same() -> None:
    mixer, x = make("mean"), inputs(2, 6, D_MODEL)
    close(mixer.heads(x), x.mean(1, keepdim=True).expand_as(x), 6)
    close(mixer(x)[:, 0], mixer(x)[:, 5], D_MODEL)


def test_identity_adds_nothing_and_has_nothing() -> None:
    mixer, x = make("identity"), inputs(2, 6, D_MODEL)
    assert mixer.proj is None
    assert not list(mixer.parameters())
    assert mixer(x).shape == x.shape
    assert not mixer(x).any()


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_head_outputs_are_captured_with_their_graph(kind: str, options: dict[str, Any]) -> None:
    mixer, x = make(kind, **options), inputs(2, 5, D_MODEL)
    mixer(x)
    before = mixer.captured
    mixer.capture = True
    found = mixer(x)
    captured = cast(Tensor, mixer.captured)
    assert before is None
    assert captured.shape == (2, 5, D_MODEL)
    if mixer.proj is not None:
        close(mixer.proj(captured), found, D_MODEL)
    if KINDS[kind].trainable:
        loss: Any = captured.square().sum()
        loss.backward()
        own = [p for name, p in mixer.named_parameters() if not name.startswith("proj.")]
        assert own
        assert all(p.grad is not None and p.grad.any() for p in own)


@pytest.mark.parametrize(
    ("kind", "options"), [case for case in CASES if not KINDS[case[0]].keeps_width]
)
def test_heads_together_may_be_wider_than_the_model(kind: str, options: dict[str, Any]) -> None:
    mixer = make_mixer(kind, 10, 3, 4, **options)
    assert mixer.heads(inputs(2, 5, 10)).shape == (2, 5, 12)
    assert mixer(inputs(2, 5, 10)).shape == (2, 5, 10)
