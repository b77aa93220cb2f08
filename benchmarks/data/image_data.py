"""An image set ready for training and measuring: splits of square images of one size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.data.card import Card
from benchmarks.data.fetch import data_path
from benchmarks.data.identity import card_hash
from benchmarks.data.image_cache import ImageCache, SquareImages
from benchmarks.data.images import ImageSplit
from benchmarks.data.sources import GeneratedSource
from benchmarks.errors import DataError


@dataclass
class ImageData:
    """One image set at one size and training fraction.

    Attributes:
        card: where it comes from.
        classes: in label order.
        channels: 1 (grey) or 3 (colour).
        image_size: side in pixels.
        train: training split (a nested subset where the fraction is below 1).
        validation: validation split, always whole.
        hash: what `data_hash` says.
        partial: whether the set lacks a part of its original.
        note: what is partial, a stand-in, a subset, resized, left out or converted; for records.
    """

    card: Card
    classes: tuple[str, ...]
    channels: int
    image_size: int
    train: ImageSplit
    validation: ImageSplit
    hash: str
    partial: bool
    note: str
    _test: ImageSplit | Callable[[], ImageSplit] = field(repr=False)

    @property
    def max_length(self) -> int:
        """Side in pixels, under the name that texts have for their length."""
        return self.image_size

    def test(self) -> ImageSplit:
        """The test split. Nothing of it is read before the first call: ask once, at the end."""
        if not isinstance(self._test, ImageSplit):
            self._test = self._test()
        return self._test


def load_card_images(card: Card, *, image_size: int, train_fraction: float = 1.0) -> ImageData:
    """Loads an image set.

    Args:
        card: of the set.
        image_size: side in pixels; images of another size are resized (`benchmarks.data.pixels`).
        train_fraction: share in (0, 1] of each label's training rows; mean and deviation are those
            of these rows only.

    Raises:
        DataError: not fetched, altered, not what its card says, a class without training rows, or
            arguments out of range.
    """
    if image_size < 1:
        raise DataError(f"data set '{card.name}': max_length (side in pixels) must be at least 1")
    if not 0 < train_fraction <= 1:
        raise DataError(f"train_fraction must lie in (0, 1], not {train_fraction}")
    notes = [card.partial, card.role]
    if train_fraction < 1:
        notes.append(f"{train_fraction:g} of the training rows")
    common: dict[str, Any] = {
        "card": card,
        "classes": card.classes,
        "channels": card.channels,
        "image_size": image_size,
        "hash": card_hash(card, max_length=image_size, train_fraction=train_fraction),
        "partial": bool(card.partial),
    }
    if isinstance(card.source, GeneratedSource):
        source = card.source
        empty = _random_pixels(card, 0, image_size)
        return ImageData(
            train=replace(empty, name="train"),
            validation=replace(empty, name="validation"),
            note="; ".join(filter(None, notes)),
            _test=lambda: _random_pixels(card, source.inputs, image_size),
            **common,
        )
    cache = ImageCache(card, image_size, train_fraction, data_path(card))
    train = cache.read("train")
    notes += _altered(card, image_size, train)
    return ImageData(
        train=train.split,
        validation=cache.read("validation").split,
        note="; ".join(filter(None, notes)),
        _test=lambda: cache.read("test").split,
        **common,
    )


def _altered(card: Card, side: int, found: SquareImages) -> list[str]:
    notes = []
    native = card.images.size if card.images else None
    if native is None:
        notes.append(f"centre squares resized to {side} x {side} pixels (bicubic)")
    elif native != side:
        notes.append(f"resized from {native} x {native} to {side} x {side} pixels (bicubic)")
    if found.n_corrupt:
        notes.append(f"{found.n_corrupt:,} corrupt images left out")
    if found.n_converted:
        notes.append(f"{found.n_converted:,} images converted from another mode")
    return notes


def _random_pixels(card: Card, n: int, side: int) -> ImageSplit:
    """Every pixel is as likely to have each value; the same bytes on every machine."""
    shape = (n, card.channels, side, side)
    # a hash stream, not a random generator: its values can never change with a library
    stream = hashlib.shake_256(card.name.encode()).digest(int(np.prod(shape)))
    return ImageSplit(
        name="generated",
        row_ids=np.arange(n, dtype=np.int64),
        pixels=np.frombuffer(stream, np.uint8).reshape(shape),
        labels=np.arange(n, dtype=np.int64) % len(card.classes),
        mean=np.full(card.channels, 0.5, np.float32),
        std=np.full(card.channels, np.sqrt((256**2 - 1) / 12) / 255, np.float32),
    )
