"""Random changes of training images: what they may do, and that one seed gives one result."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.data.batches import ImageBatch, collate
from benchmarks.data.card import find_card
from benchmarks.data.image_data import load_card_images
from benchmarks.data.load import load_data
from benchmarks.errors import UsageError
from benchmarks.training.augment import Augmentation, augment, mix
from benchmarks.training.recipe import Recipe

BLACK = torch.tensor([-1.0, -2.0, -3.0])


def batch(n: int = 6, side: int = 16, channels: int = 3) -> ImageBatch:
    made = torch.Generator().manual_seed(9)
    return ImageBatch(
        pixel_values=torch.randn(n, channels, side, side, generator=made),
        labels=torch.arange(n) % 3,
        row_ids=torch.arange(n),
    )


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["crop", "crop-flip"])
def test_every_image_is_a_shifted_one(kind: str) -> None:
    made = batch(n=40)
    found = augment(made, kind, seeded(), BLACK)  # type: ignore[arg-type]
    assert found.labels is made.labels
    wide = BLACK[:, None, None].expand(40, 3, 20, 20).clone()
    wide[:, :, 2:18, 2:18] = made.pixel_values  # an eighth of 16 on each side
    seen = set()
    for i, image in enumerate(found.pixel_values):
        places = [
            (row, column, flipped)
            for row in range(5)
            for column in range(5)
            for flipped, turned in ((False, image), (True, image.flip(-1)))
            if torch.equal(turned, wide[i, :, row : row + 16, column : column + 16])
        ]
        assert len(places) == 1
        seen.add(places[0])
    assert {flipped for *_, flipped in seen} == ({False} if kind == "crop" else {False, True})
    assert {row for row, *_ in seen} == {column for _, column, _ in seen} == set(range(5))


def test_no_change_is_none() -> None:
    made = batch()
    assert augment(made, "none", seeded(), BLACK) is made


def test_small_images_are_not_shifted() -> None:
    made = batch(side=7)
    assert torch.equal(augment(made, "crop", seeded(), BLACK).pixel_values, made.pixel_values)


def test_one_seed_gives_one_result() -> None:
    def both(seed: int) -> torch.Tensor:
        generator = seeded(seed)
        changed = augment(batch(), "crop-flip", generator, BLACK)
        return mix(changed, 0.8, 1.0, 3, generator)[0]

    state = torch.random.get_rng_state()
    assert torch.equal(both(0), both(0))
    assert not torch.equal(both(0), both(1))
    # the global generator has no part in it
    assert torch.equal(torch.random.get_rng_state(), state)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.sampled_from([(0.8, 0.0), (0.0, 1.0), (0.8, 1.0), (0.0, 0.0)]))
def test_targets_are_mixed_as_the_pixels_are(seed: int, alphas: tuple[float, float]) -> None:
    n, side = 6, 16
    made = ImageBatch(
        # each image has one value of its own, and each is a class of its own
        pixel_values=torch.arange(n).float()[:, None, None, None].expand(n, 3, side, side),
        labels=torch.arange(n),
        row_ids=torch.arange(n),
    )
    pixels, targets = mix(made, *alphas, n, seeded(seed))
    assert targets.shape == (n, n)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(n))
    assert (targets >= 0).all()
    # the mean pixel of an image says what was mixed, in which proportion
    torch.testing.assert_close(
        pixels.mean(dim=(1, 2, 3)), targets @ torch.arange(n).float(), rtol=1e-4, atol=1e-4
    )
    if alphas[0] == 0:
        assert torch.isin(pixels, made.pixel_values).all()  # pasted, never blended
    assert made.pixel_values.shape == pixels.shape


def test_both_kinds_of_mixing_take_turns() -> None:
    generator = seeded()
    blended = 0
    for _ in range(60):
        pixels, _ = mix(batch(), 0.8, 1.0, 3, generator)
        known = torch.isin(pixels, batch().pixel_values)
        blended += not bool(known.all())
    assert 15 <= blended <= 45


def test_a_negative_alpha_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative, not -1 and 0"):
        mix(batch(), -1, 0, 3, seeded())


def test_a_recipe_is_followed() -> None:
    data = load_card_images(find_card("random-images"), image_size=16)
    inputs = collate(data.test(), range(8))
    plain = Augmentation(Recipe(), data, 0)
    (pixels,), targets = plain(inputs)
    assert targets is inputs.labels
    assert pixels is inputs.inputs[0]
    (pixels,), targets = Augmentation(Recipe(augment="crop"), data, 0)(inputs)
    black = torch.from_numpy(-data.train.mean / data.train.std)
    assert (pixels == black[:, None, None]).any()
    assert targets is inputs.labels
    (pixels,), targets = Augmentation(Recipe(mixup=0.8), data, 0)(inputs)
    assert targets.shape == (8, 2)
    assert not torch.equal(pixels, inputs.inputs[0])


def test_texts_are_left_alone() -> None:
    data = load_data("random-tokens", max_length=4)
    inputs = collate(data.test(), np.arange(3))
    found, targets = Augmentation(Recipe(), data, 0)(inputs)
    assert found == inputs.inputs
    assert targets is inputs.labels
    with pytest.raises(UsageError, match="are for images; data set 'random-tokens' holds texts"):
        Augmentation(Recipe(mixup=0.8), data, 0)
