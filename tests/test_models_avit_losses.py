"""A-ViT's auxiliary losses: NVIDIA's prior, the divergence from it, and their weights."""

from __future__ import annotations

import math

import pytest
import torch
from tiny_avit import SIZES, TOKENS, images, make

from models.avit_config import AViTConfig
from models.token_halting import prior_divergence


def test_the_prior_is_nvidias() -> None:
    prior = AViTConfig(depth=12).prior
    listed = [0, 0, 0, 0, 0.0004, 0.0145, 0.1761, 0.7890, 1.3009, 0.7890, 0.1761, 0.0145]
    assert prior == pytest.approx(listed, abs=1e-4)
    assert sum(prior[:8]) == pytest.approx(0.98)
    assert sum(prior) == pytest.approx(3.26, abs=0.005)
    for config, centre in ((AViTConfig(depth=8), 5), (AViTConfig(depth=8, prior_layer=3), 3)):
        assert config.prior.index(max(config.prior)) == centre


def test_one_image_alone_leaves_nvidias_prior_out() -> None:
    halting = torch.full((1, 4, TOKENS), 0.5, requires_grad=True)
    prior = AViTConfig(**SIZES).prior
    assert prior_divergence(halting, prior, s2s=False) == 0
    assert prior_divergence(halting, prior, s2s=True) > 0


@pytest.mark.parametrize("s2s", [True, False])
def test_shares_are_clamped_and_only_then_made_to_sum_to_one(*, s2s: bool) -> None:
    prior = (0.2, 0.2, 0.5, 0.1)
    halting = torch.tensor([0.001, 0.3, 0.6, 0.099]).view(1, 4, 1).repeat(2, 1, TOKENS)
    total = 0.01 + 0.3 + 0.6 + 0.099 if s2s else 1.0
    shares = [share / total for share in (0.01, 0.3, 0.6, 0.099)]
    parts = [t * math.log(t / share) for t, share in zip(prior, shares, strict=True)]
    found = prior_divergence(halting, prior, s2s=s2s).item()
    assert found == pytest.approx(sum(parts) / 4, rel=1e-5)


def test_weights_of_the_losses_are_the_modes_or_the_given() -> None:
    output = make().train()(images())
    base = make().auxiliary_losses(output)
    given = make(halting_weight=0.5, ponder_weight=1e-3).auxiliary_losses(output)
    torch.testing.assert_close(given["ponder"], 10 * base["ponder"])
    torch.testing.assert_close(given["prior"], 5 * base["prior"])


def test_every_parameter_learns() -> None:
    model = make(layer_scale=True).train()
    output = model(images(12))
    loss = output.logits.square().sum() + sum(model.auxiliary_losses(output).values())
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
