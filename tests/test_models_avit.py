"""A-ViT: the class token in both modes, the trained ViT that it starts from, and its settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_avit import BATCH, MODES, SIZES, blocks_of, images, make, tokens_of

from models.avit_config import AViTConfig
from models.vit import ViT
from models.vit_config import ViTConfig


def test_the_modes_differ_in_the_class_token() -> None:
    stays, halts = (tokens_of(make(mode)(images())) for mode in MODES)
    assert stays.keep[:, :, 0].all()
    assert not halts.keep[:, :, 0].all()
    # computed in all four layers, and its remainder counted once
    assert ((stays.ponder[:, 0] >= 4.0) & (stays.ponder[:, 0] <= 5.0)).all()


def test_every_layer_has_a_say_where_the_class_token_stays() -> None:
    """However early the class token's scores reach 1, the last layer is part of the output."""
    model = make("s2s", centre=-30.0)
    model.gate_center[0] = 2.0
    before = model(images()).logits
    with torch.no_grad():
        blocks_of(model)[3].mlp.fc2.bias.add_(torch.arange(12.0))
    assert (model(images()).logits - before).abs().max() > 0.01
    assert tokens_of(model(images())).keep[:, 1:, 1:].logical_not().all(), "patches halt at once"


def test_the_output_of_the_class_token_sums_to_one() -> None:
    """With every layer's class token alike, the mean field is that token, in both modes."""
    for mode in MODES:
        model = make(mode, centre=0.5)
        with torch.no_grad():
            for block in blocks_of(model):
                block.attn.proj.weight.zero_()
                block.attn.proj.bias.zero_()
                block.mlp.fc2.weight.zero_()
                block.mlp.fc2.bias.zero_()
            first = model.cls_token[:, 0] + model.pos_embed[:, 0]
            expected = model.head(model.norm(first)).expand(BATCH, -1)
            torch.testing.assert_close(model(images()).logits, expected)


def test_a_trained_vit_is_where_it_starts() -> None:
    trained, model = ViT(ViTConfig(**SIZES)), make(centre=7.0)
    model.start_from(trained.state_dict())
    for name, tensor in trained.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)
    assert model.gate_center.tolist() == [7.0, 7.0]
    other = ViT(ViTConfig(**SIZES | {"d_ff": 24}))
    with pytest.raises(ValueError, match=r"mlp\.fc1\.weight is \(24, 12\) .* needs \(20, 12\)"):
        model.start_from(other.state_dict())


def test_the_centre_is_kept_with_the_weights() -> None:
    model, other = make(centre=2.5), make(centre=0.0)
    other.load_state_dict(model.state_dict())
    assert other.gate_center.tolist() == [2.5, 2.5]
    assert torch.equal(other(images()).logits, model(images()).logits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keep_ratio": 0.0}, r"keep_ratio must lie in \(0, 1\], not 0.0"),
        ({"keep_ratio": 1.2}, r"keep_ratio must lie in \(0, 1\], not 1.2"),
        ({"keep_ratio": 0.2}, r"keep_ratio = 0.2 cannot be reached with depth = 4: .* 0.25"),
        ({"mode": "2022"}, "mode must be 's2s' or 'avit2022', not '2022'"),
        ({"gate_scale": 0.0}, "gate_scale must be positive, not 0.0"),
        ({"ponder_weight": -1.0}, "ponder_weight must not be negative, not -1.0"),
        ({"halting_weight": -1.0}, "halting_weight must not be negative, not -1.0"),
        ({"prior_layer": 4}, r"prior_layer must lie in 1..3 \(depth = 4\), not 4"),
        ({"finetune_epochs": -1}, "finetune_epochs must not be negative, not -1"),
    ],
)
def test_values_that_cannot_be_are_one_clear_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AViTConfig(**SIZES | change)


def test_it_is_trained_for_epochs_of_its_own() -> None:
    assert AViTConfig(finetune_epochs=3).training_epochs(50) == 3
    assert "pretrained" not in AViTConfig.declarable()
    assert AViTConfig.base == "weights"
