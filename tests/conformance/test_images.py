"""What only images have: sizes, and tokens that halt."""

from __future__ import annotations

from typing import Any

import pytest
import torch


def test_images_of_another_size_are_one_clear_error(image_case: Any) -> None:
    model = image_case.model()
    side, channels = image_case.config.image_size, image_case.config.channels
    for shape in (
        (2, channels, 2 * side, 2 * side),
        (2, channels, side, side - image_case.config.patch_size),
        (2, channels + 1, side, side),
        (channels, side, side),
    ):
        with pytest.raises(ValueError, match=rf"{side}\D+{side}") as raised:
            model(torch.zeros(shape))
        assert str(channels) in str(raised.value)


def test_every_patch_is_looked_at(image_case: Any) -> None:
    """And every channel: no pixel may change without a logit that changes."""
    model = image_case.model().eval()
    if image_case.run(model, image_case.batch(1)).tokens is not None:
        pytest.skip("halts tokens, so what one of them shows may be lost on purpose")
    if getattr(image_case.config, "mixer", "") in {"identity", "conv"}:
        pytest.skip("mixes nothing, or neighbours alone, in some layers")
    pixels = image_case.batch(1).inputs[0].clone().requires_grad_()
    model(pixels).logits.square().sum().backward()
    assert (pixels.grad != 0).all()


def test_dropping_a_token_is_masking_it(image_case: Any) -> None:
    model = image_case.model().eval()
    batch = image_case.batch(6)
    dropped = image_case.run(model, batch)
    if dropped.tokens is None:
        pytest.skip("halts no tokens")
    model.packed = False
    masked = image_case.run(model, batch)
    assert torch.equal(dropped.tokens.keep, masked.tokens.keep)
    tolerance = image_case.tolerance(masked.logits)
    assert (dropped.logits - masked.logits).abs().max() <= tolerance
    forced = model(*batch.inputs, keep=torch.ones_like(masked.tokens.keep))
    assert forced.tokens.keep.all()
    assert (forced.logits - masked.logits).abs().max() > tolerance, "halting changes something"
