"""Mixers by name, and their way into trained models."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from models.bert import Bert
from models.bert_config import BertConfig
from models.dense import SelfAttention
from models.encoder import Block
from models.mixers.attention import Attention
from models.mixers.build import Site, make_mixer, replace_attention
from models.mixers.conv import Conv
from models.mixers.in_encoder import MixerLayer
from models.mixers.interface import TokenMixer
from models.mixers.names import KINDS, check_layers, label, resolve

DEPTH, D_MODEL, N_HEADS = 4, 12, 3
PARTLY = torch.arange(7) >= torch.tensor([7, 4])[:, None]
NO_PADDING = torch.zeros(2, 7, dtype=torch.bool)


def bert() -> Bert:
    torch.manual_seed(0)
    return Bert(
        BertConfig(
            pretrained=None,
            depth=DEPTH,
            d_model=D_MODEL,
            n_heads=N_HEADS,
            vocab_size=20,
            max_length=8,
        )
    ).eval()


def sites(model: Bert) -> list[Site]:
    return [(block, "attention") for block in model.blocks]


def words() -> Tensor:
    return torch.randint(20, (2, 7), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_made_and_says_what_it_is(kind: str) -> None:
    mixer = make_mixer(kind, 16, 2)
    assert isinstance(mixer, TokenMixer)
    own = [name for name, _ in mixer.named_parameters() if not name.startswith("proj.")]
    assert bool(own) == KINDS[kind].trainable
    assert KINDS[kind].summary
    for option, default in KINDS[kind].options.items():
        make_mixer(kind, 16, 2, 8, **{option: default})


def test_options_reach_the_module() -> None:
    mixer = make_mixer("conv", 8, 2, kernel_size=5)
    assert isinstance(mixer, Conv)
    assert mixer.conv.kernel_size == (1, 5)


@pytest.mark.parametrize(
    ("kind", "geometry", "options", "message"),
    [
        ("bi-lstm", (8, 2, 4), {}, "unknown mixer 'bi-lstm'; did you mean 'bilstm'"),
        ("", (8, 2, 4), {}, "unknown mixer ''"),
        ("bilstm", (8, 2, 4), {"bidirectoinal": True}, "did you mean 'bidirectional'"),
        ("identity", (8, 2, 4), {"kernel_size": 3}, "Known: none"),
        ("bilstm", (8, 2, 4), {"bidirectional": 1}, "is true or false, not 1"),
        ("conv", (8, 2, 4), {"kernel_size": True}, "a whole number from 1 on, not True"),
        ("conv", (8, 2, 4), {"kernel_size": 0}, "a whole number from 1 on, not 0"),
        ("conv", (8, 2, 4), {"kernel_size": 4}, "must be odd"),
        ("bilstm", (8, 3, None), {}, "n_heads = 3 does not divide d_model = 8"),
        ("bilstm", (8, 0, None), {}, "n_heads = 0 does not divide d_model = 8"),
        ("bilstm", (8, 2, 0), {}, "head_dim must be at least 1, not 0"),
        ("bilstm-half", (8, 2, 3), {}, "2 x 3 = 6 must be d_model = 8"),
        ("mean", (8, 2, 3), {}, "2 x 3 = 6 must be d_model = 8"),
        ("bilstm-half", (9, 3, 3), {}, "head_dim must be even, not 3"),
    ],
)
def test_mistakes_are_named(
    kind: str, geometry: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_mixer(kind, *geometry, **options)


def test_an_odd_head_can_be_read_one_way() -> None:
    assert make_mixer("bilstm-half", 9, 3, bidirectional=False)(torch.ones(1, 2, 9)).shape[2] == 9


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("bilstm", {}, "bilstm"),
        ("bilstm", {"bidirectional": False}, "lstm (one way)"),
        ("bimamba", {"bidirectional": False, "state": 64}, "mamba (one way), state 64"),
        ("conv", {"kernel_size": 7}, "conv"),
        ("conv", {"kernel_size": 9}, "conv, kernel_size 9"),
    ],
)
def test_labels_say_what_differs(kind: str, options: dict[str, Any], expected: str) -> None:
    assert label(kind, options) == expected


def test_options_are_filled_in() -> None:
    assert resolve("bimamba", {"state": 16}) == {"state": 16, "conv": 4, "bidirectional": True}


@given(st.lists(st.integers(-3, 7), max_size=5))
def test_layers_are_checked(replace: list[int]) -> None:
    good = len(set(replace)) == len(replace) and all(0 <= i < DEPTH for i in replace)
    if good:
        assert check_layers(replace, DEPTH) == tuple(sorted(replace))
        return
    with pytest.raises(ValueError, match="replace") as error:
        check_layers(replace, DEPTH)
    assert str(DEPTH) in str(error.value)
    assert any(str(i) in str(error.value) for i in replace)


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        ([4], "no layer 4 among 4; they are 0 to 3"),
        ([-1], "no layer -1 among 4"),
        ([1, 2, 1], r"layer 1 \(of 4\) is named twice"),
        ([True], "True is not a layer"),
        ([1.0], "1.0 is not a layer"),
    ],
)
def test_wrong_layers_are_named_and_nothing_is_changed(replace: Any, message: str) -> None:
    model = bert()
    with pytest.raises(ValueError, match=message):
        replace_attention(sites(model), replace, "bilstm", D_MODEL, N_HEADS, adapt=MixerLayer)
    assert all(isinstance(cast(Block, b).attention, SelfAttention) for b in model.blocks)


def test_replacing_nothing_leaves_the_model_bit_for_bit() -> None:
    model = bert()
    before = model(words(), PARTLY).logits
    made = replace_attention(sites(model), [], "bilstm", D_MODEL, N_HEADS, adapt=MixerLayer)
    assert made == {}
    assert torch.equal(model(words(), PARTLY).logits, before)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "identity"])
def test_the_output_projection_is_copied(kind: str) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn: nn.Module = Attention(D_MODEL, N_HEADS, 4)

    layers = [Layer().double().eval() for _ in range(3)]
    teachers = [cast(Attention, layer.attn) for layer in layers]
    places: list[Site] = [(layer, "attn") for layer in layers]
    made = replace_attention(places, [2, 0], kind, D_MODEL, N_HEADS)
    assert list(made) == [0, 2]
    assert layers[1].attn is teachers[1]
    for index in (0, 2):
        mixer, teacher = made[index], teachers[index].proj
        assert layers[index].attn is mixer
        assert not mixer.training
        assert all(p.dtype == torch.float64 for p in mixer.parameters())
        own = cast(nn.Linear, mixer.proj)
        assert torch.equal(own.weight, teacher.weight)
        assert torch.equal(own.bias, teacher.bias)
        assert own.weight.data_ptr() != teacher.weight.data_ptr()


@pytest.mark.parametrize("mask", [NO_PADDING, PARTLY])
@pytest.mark.parametrize("plain", [False, True])
def test_attention_in_place_of_attention_gives_the_same_bert(mask: Tensor, plain: bool) -> None:
    model = bert()
    model.plain_attention = plain
    expected = model(words(), mask).logits
    teachers = [cast(SelfAttention, cast(Block, b).attention) for b in copy.deepcopy(model).blocks]
    made = replace_attention(
        sites(model), range(DEPTH), "attention", D_MODEL, N_HEADS, adapt=MixerLayer
    )
    for index, mixer in made.items():
        # from rows by head, and within a head Q, K, V, to all Q, all K, all V
        own, teacher = cast(Attention, mixer).qkv, teachers[index].qkv
        own.weight.data = (
            teacher.weight.data.view(N_HEADS, 3, -1).transpose(0, 1).reshape(-1, D_MODEL)
        )
        own.bias.data = teacher.bias.data.view(N_HEADS, 3, -1).transpose(0, 1).reshape(-1)
    torch.testing.assert_close(model(words(), mask).logits, expected)
    assert all(mixer.plain == plain for mixer in made.values())


@pytest.mark.parametrize("kind", KINDS)
def test_any_mixer_works_in_bert_and_its_output_keeps_its_name(kind: str) -> None:
    model = bert()
    trained = {k: v for k, v in model.state_dict().items() if ".attention.output." in k}
    replace_attention(sites(model), [1, 3], kind, D_MODEL, N_HEADS, adapt=MixerLayer)
    own = {k: v for k, v in model.state_dict().items() if ".attention.output." in k}
    kept = (0, 2) if kind == "identity" else (0, 1, 2, 3)
    assert set(own) == {k for k in trained if int(k.split(".")[1]) in kept}
    assert all(torch.equal(own[k], trained[k]) for k in own)
    layer = cast(MixerLayer, cast(Block, model.blocks[1]).attention)
    layer.capture = True
    padded = model(words(), PARTLY).logits
    assert layer.captured is not None
    assert layer.captured.shape == (2, 7, D_MODEL)
    assert not layer.captured[PARTLY].any()
    torch.testing.assert_close(padded[1:], model(words()[1:, :4], NO_PADDING[1:, :4]).logits)


def test_an_empty_text_reads_all_of_itself() -> None:
    model = bert()
    replace_attention(sites(model), range(DEPTH), "bilstm", D_MODEL, N_HEADS, adapt=MixerLayer)
    assert model(words(), torch.ones(2, 7, dtype=torch.bool)).logits.isfinite().all()


def test_attention_of_another_geometry_is_refused() -> None:
    with pytest.raises(ValueError, match=r"layer 2: .* shape \(12, 12\), .* would be \(12, 24\)"):
        replace_attention(sites(bert()), [2], "bilstm", D_MODEL, N_HEADS, 8, adapt=MixerLayer)


def test_what_has_no_output_projection_is_refused() -> None:
    holder = nn.ModuleDict({"attn": nn.Identity()})
    with pytest.raises(ValueError, match="layer 0: Identity has no output projection"):
        replace_attention([(holder, "attn")], [0], "bilstm", 8, 2)
