"""A-ViT's calibration: the ratio it reaches, and what it leaves to the class token."""

from __future__ import annotations

import pytest
import torch
from tiny_avit import MODES, SIZES, TOKENS, images, make, masked, tokens_of

from models.avit import AViT
from models.vit import ViT
from models.vit_config import ViTConfig


def test_a_centre_far_above_every_score_halts_nothing() -> None:
    model, plain = make(keep_ratio=1.0), ViT(ViTConfig(**SIZES)).eval()
    state = {name: t for name, t in model.state_dict().items() if name != "gate_center"}
    plain.start_from(state)
    assert model.calibrate([images()]) == 1.0
    with torch.no_grad():
        for run in (masked, AViT.__call__):
            torch.testing.assert_close(
                run(model, images()).logits, plain(images()).logits, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.7, 0.95])
def test_calibration_reaches_the_wanted_ratio(mode: str, ratio: float) -> None:
    model = make(mode, keep_ratio=ratio).train()
    batches = [images(40), images(20, seed=2)]
    reached = model.calibrate(batches)
    assert model.training
    model.eval()
    with torch.no_grad():
        kept = torch.cat([tokens_of(model(part)).keep[:, :, 1:] for part in batches])
    assert kept.float().mean().item() == pytest.approx(reached, abs=1e-6)
    assert reached == pytest.approx(ratio, abs=0.01)
    again = make(mode, keep_ratio=ratio)
    assert again.calibrate(batches) == reached
    assert torch.equal(again.gate_center, model.gate_center)


def test_calibration_leaves_the_class_token_to_the_last_layer() -> None:
    stays, halts = (make(mode, keep_ratio=0.4) for mode in MODES)
    for model in (stays, halts):
        model.calibrate([images(40)])
    assert stays.gate_center[0] > stays.gate_center[1] + 3
    assert halts.gate_center[0] == halts.gate_center[1]
    before_last = tokens_of(stays(images(40))).halting[:, :-1, 0].sum(1)
    assert 0 < before_last.mean() < 0.1
    everything = torch.ones(40, 4, TOKENS, dtype=torch.bool)
    highest = tokens_of(stays(images(40), keep=everything)).halting[:, :, 0].max()
    # so that all layers together stay below a tenth
    assert highest.item() == pytest.approx(1 / (1 + 10 * 4), rel=1e-3)


def test_calibration_needs_images() -> None:
    with pytest.raises(ValueError, match="calibration needs images"):
        make().calibrate([])


def test_the_ratio_that_calibration_reached_is_told() -> None:
    model = make("s2s", keep_ratio=0.6)
    assert model.schedule_state() == {}
    reached = model.calibrate([images(batch=6)])
    assert model.schedule_state() == {"calibrated_keep_ratio": reached}
