"""A-ViT's dropped tokens against masked ones: values, gradients, forced masks, and the cost they save."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_avit import BATCH, MODES, SIZES, TOKENS, blocks_of, images, make, masked, tokens_of
from torch import Tensor, nn

from models.avit import AViT
from models.mixers.interface import TokenMixer
from models.vit_config import ViTConfig


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("centre", [-30.0, -1.0, 1.0, 3.0, 30.0])
def test_dropped_tokens_equal_masked_ones(mode: str, centre: float) -> None:
    model = make(mode, centre)
    expected, found = masked(model, images(9)), model(images(9))
    want, got = tokens_of(expected), tokens_of(found)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-5)
    assert torch.equal(got.keep, want.keep)
    assert torch.equal(got.kept, want.keep.sum(2))
    torch.testing.assert_close(got.ponder, want.ponder, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got.halting, want.halting * want.keep, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_dropped_tokens_equal_those_of_masked_ones(mode: str) -> None:
    gradients = []
    for run in (masked, AViT.__call__):
        model = make(mode)
        output = run(model, images())
        (output.logits.square().sum() + tokens_of(output).ponder.sum()).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


class MeanOfEarlier(TokenMixer):
    """A mixer whose outputs depend on the order of the tokens, and on what lies at padding."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(12, 12)

    def heads(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        mixed = x.cumsum(1) / torch.arange(1, x.shape[1] + 1).unsqueeze(1)
        if key_padding_mask is None:
            return mixed
        return mixed.masked_fill(key_padding_mask.unsqueeze(2), 0.0)


class Nothing(TokenMixer):
    """Adds nothing, and has no output projection."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        del key_padding_mask
        return torch.zeros_like(x)


def with_other_mixers(model: AViT) -> AViT:
    torch.manual_seed(1)
    blocks_of(model)[1].attn = MeanOfEarlier()
    blocks_of(model)[2].attn = Nothing()
    return model


@st.composite
def last_layers(draw: st.DrawFn, least: int) -> list[list[int]]:
    """For each token of each image, in how many layers it is computed."""
    row = st.lists(st.integers(least, 4), min_size=TOKENS, max_size=TOKENS)
    return draw(st.lists(row, min_size=1, max_size=4))


def keep_of(ages: list[list[int]], mode: str) -> Tensor:
    keep = torch.tensor(ages)[:, None] > torch.arange(4)[None, :, None]
    if mode == "s2s":
        keep[:, :, 0] = True
    return keep


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other_mixers", [False, True])
@settings(max_examples=15)
@given(ages=last_layers(least=0))
def test_forced_masks_drop_what_they_mask(
    mode: str, other_mixers: bool, ages: list[list[int]]
) -> None:
    model = make(mode, centre=2.0)
    if other_mixers:
        with_other_mixers(model)
    for mixer in model.mixers():
        mixer.capture = True
    keep, pixels = keep_of(ages, mode), images(len(ages))
    with torch.no_grad():
        expected = masked(model, pixels, keep)
        heads = [mixer.captured for mixer in model.mixers()]
        found = model(pixels, keep=keep)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(tokens_of(found).keep, keep)
    torch.testing.assert_close(tokens_of(found).ponder, tokens_of(expected).ponder)
    for layer, (mixer, before) in enumerate(zip(model.mixers(), heads, strict=True)):
        assert (before is None) == (mixer.captured is None) == isinstance(mixer, Nothing)
        if before is not None:
            torch.testing.assert_close(mixer.captured, before, rtol=1e-4, atol=1e-5)
            assert not before[~keep[:, layer]].any()


@pytest.mark.parametrize("mode", MODES)
def test_a_mixer_sees_kept_tokens_as_if_there_were_no_others(mode: str) -> None:
    """Dropping a token from the first layer on is the same as never having had it."""
    model = with_other_mixers(make(mode))
    keep = keep_of([[4, 0, 4, 4, 0, 0, 4, 4, 0, 4]], mode)
    few = make(mode)
    with torch.no_grad():
        mixed: list[Tensor] = []
        blocks_of(model)[1].attn.proj.register_forward_pre_hook(lambda _, a: mixed.append(a[0]))
        model(images(1), keep=keep)
        x = few._embed(images(1))[:, keep[0, 0]]
        x = blocks_of(few)[0](x)
        second = blocks_of(model)[1]
        expected = second.attn.heads(second.norm1(x))
    torch.testing.assert_close(mixed[0], expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_its_own_masks_forced_change_nothing(mode: str) -> None:
    model = make(mode)
    for run in (masked, AViT.__call__):
        own = run(model, images())
        forced = run(model, images(), keep=tokens_of(own).keep)
        assert torch.equal(forced.logits, own.logits)
        assert torch.equal(tokens_of(forced).ponder, tokens_of(own).ponder)


@pytest.mark.parametrize("mode", MODES)
def test_halted_tokens_cost_nothing(mode: str) -> None:
    from benchmarks.data.batches import ImageBatch
    from benchmarks.meters.flop_handlers import count_by_dispatch, count_with_fvcore

    model = make(mode)
    kept = tokens_of(model(images())).kept
    assert len(kept.unique()) > 3
    formula = [model.config.macs(12, row).total for row in kept.tolist()]
    whole = model.config.macs(12).total
    assert min(formula) < whole == ViTConfig(**SIZES).macs(12).total
    labels = torch.zeros(BATCH, dtype=torch.int64)
    for row, expected in enumerate(formula):
        one = ImageBatch(images()[row : row + 1], labels[:1], labels[:1])
        assert count_with_fvcore(model, one).macs == expected
        model.plain_attention = True
        assert count_by_dispatch(model, one).macs == expected
        model.plain_attention = False
    model.plain_attention = True
    batch = ImageBatch(images(), labels, labels)
    assert count_by_dispatch(model, batch).macs == sum(formula), "no padding between images"


def test_masks_that_cannot_be_are_one_clear_error() -> None:
    model = make()
    keep = torch.ones(BATCH, 4, TOKENS, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"a bool tensor \(4, 4, 10\) .*, not torch.float32"):
        model(images(), keep=keep.float())
    with pytest.raises(ValueError, match=r"not torch.bool \(4, 4, 9\)"):
        model(images(), keep=keep[:, :, 1:])
    back = keep.clone()
    back[0, 1, 3] = False
    with pytest.raises(ValueError, match="brings a token back"):
        model(images(), keep=back)
    without = keep.clone()
    without[1, 3, 0] = False
    with pytest.raises(ValueError, match="drops the class token"):
        model(images(), keep=without)
    assert make("avit2022")(images(), keep=without).logits.isfinite().all()
