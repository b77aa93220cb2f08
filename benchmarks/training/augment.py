"""Random changes of training images: shifted crops, mirroring, mixup and cutmix.

Few lines of torch instead of torchvision: each of its releases runs with exactly one torch release (its
ordinary wheel beside a CPU-only torch breaks at import), and all that is needed here is an index, a
flip and a blend. Everything is drawn from one generator, a batch at a time, so that a run repeats bit
for bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.data.batches import AnyBatch, ImageBatch
from benchmarks.data.image_data import ImageData
from benchmarks.errors import UsageError

if TYPE_CHECKING:
    from benchmarks.data.load import AnyData
    from benchmarks.training.recipe import Augment, Recipe

SHIFT = 8
"""A crop is shifted by up to this part of the side, in pixels rounded down: 4 of 32, 3 of 28."""


class Augmentation:
    """What a recipe does to the training batches of one data set.

    Args:
        recipe: its `augment`, `mixup` and `cutmix`.
        data: texts are left as they are, and must be.
        seed: of all that is drawn.

    Raises:
        UsageError: the recipe changes images, and the data set holds texts.
    """

    def __init__(self, recipe: Recipe, data: AnyData, seed: int) -> None:
        self._recipe = recipe
        self._n_classes = len(data.classes)
        self._generator = torch.Generator().manual_seed(seed)
        self._black = torch.zeros(0)
        if isinstance(data, ImageData):
            self._black = torch.from_numpy(-data.train.mean / data.train.std)
        elif recipe.changes_images:
            raise UsageError(
                f"recipe: augment, mixup and cutmix are for images; data set '{data.card.name}' holds "
                "texts"
            )

    def __call__(self, batch: AnyBatch) -> tuple[tuple[Any, ...], Tensor]:
        """A model's inputs, and targets: (batch,) labels; where images are mixed (batch, classes)."""
        recipe = self._recipe
        if not isinstance(batch, ImageBatch):
            return batch.inputs, batch.labels
        batch = augment(batch, recipe.augment, self._generator, self._black)
        if recipe.mixup == 0 and recipe.cutmix == 0:
            return batch.inputs, batch.labels
        pixels, targets = mix(batch, recipe.mixup, recipe.cutmix, self._n_classes, self._generator)
        return (pixels,), targets


def augment(
    batch: ImageBatch, kind: Augment, generator: torch.Generator, black: Tensor
) -> ImageBatch:
    """Shifts each image at random, and mirrors every second one.

    Args:
        batch: of images.
        kind: "none", "crop" (shifted) or "crop-flip" (shifted and mirrored).
        generator: what is drawn from.
        black: (channels,), what a black pixel has become by normalisation; fills what a shift uncovers.
    """
    if kind == "none":
        return batch
    pixels = _shifted(batch.pixel_values, generator, black)
    if kind == "crop-flip":
        mirrored = torch.rand(len(batch), generator=generator) < 0.5
        pixels = torch.where(mirrored[:, None, None, None], pixels.flip(-1), pixels)
    return replace(batch, pixel_values=pixels)


def mix(
    batch: ImageBatch, mixup: float, cutmix: float, n_classes: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Mixes each image with another one of the batch, and their labels in the same proportion.

    Mixup (Zhang et al. 2018) blends the two; cutmix (Yun et al. 2019) pastes a rectangle of the other,
    cut off at the border. The proportion is one of the batch, from Beta(alpha, alpha). If both are
    asked for, each batch takes one of them, by a fair coin, as DeiT's recipe does.

    Args:
        batch: of images.
        mixup: alpha; 0 for none.
        cutmix: alpha; 0 for none.
        n_classes: that there are.
        generator: what is drawn from.

    Returns:
        (batch, channels, side, side) images and (batch, n_classes) targets that sum to 1.

    Raises:
        ValueError: an alpha is negative.
    """
    if min(mixup, cutmix) < 0:
        raise ValueError(f"mixup and cutmix must not be negative, not {mixup} and {cutmix}")
    pixels, labels = batch.pixel_values, functional.one_hot(batch.labels, n_classes).float()
    if mixup == 0 and cutmix == 0:
        return pixels, labels
    pasting = cutmix > 0 and (mixup == 0 or bool(torch.rand((), generator=generator) < 0.5))
    own = _beta(cutmix if pasting else mixup, generator)
    other = torch.randperm(len(batch), generator=generator)
    if pasting:
        pixels, own = _pasted(pixels, pixels[other], own, generator)
    else:
        pixels = torch.lerp(pixels[other], pixels, own)
    return pixels, torch.lerp(labels[other], labels, own)


def _shifted(pixels: Tensor, generator: torch.Generator, black: Tensor) -> Tensor:
    n, channels, side, _ = pixels.shape
    most = side // SHIFT
    wide = black[:, None, None].expand(channels, side + 2 * most, side + 2 * most)
    wide = wide.repeat(n, 1, 1, 1)
    wide[:, :, most : most + side, most : most + side] = pixels
    first = torch.randint(2 * most + 1, (2, n, 1), generator=generator)
    rows, columns = first + torch.arange(side)
    image, channel = torch.arange(n), torch.arange(channels)
    return wide[
        image[:, None, None, None],
        channel[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]


def _pasted(
    pixels: Tensor, others: Tensor, own: float, generator: torch.Generator
) -> tuple[Tensor, float]:
    """Images with one rectangle of the others, and the share of their own that is left."""
    side = pixels.shape[-1]
    half = round(side * (1 - own) ** 0.5) // 2
    row, column = torch.randint(side, (2,), generator=generator).tolist()
    top, bottom = max(row - half, 0), min(row + half, side)
    left, right = max(column - half, 0), min(column + half, side)
    pixels = pixels.clone()
    pixels[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
    return pixels, 1 - (bottom - top) * (right - left) / side**2


def _beta(alpha: float, generator: torch.Generator) -> float:
    """From Beta(alpha, alpha), which torch draws by its global generator only."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return float(np.random.default_rng(seed).beta(alpha, alpha))
