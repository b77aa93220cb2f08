"""From an image file to pixels of a set's mode, and from these to a square of one size."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.data.image_files import Item
from benchmarks.data.image_reader import ImageReader
from benchmarks.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]
"""(channels, height, width)."""

MODES = {1: "L", 3: "RGB"}
CONVERTIBLE = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"})
"""Modes of 8 bits; of others (16-bit grey, floats) a conversion would cut off values."""


class CorruptImageError(DataError):
    """An image that cannot be decoded; the text names it."""


def decode(item: Item, reader: ImageReader) -> tuple[Pixels, bool]:
    """Pixels of an image in its own size and the set's mode, and whether they were converted.

    Raises:
        CorruptImageError: it cannot be decoded.
        DataError: it has another size or mode than the set, and the card doesn't say what then.
    """
    if isinstance(item.content, np.ndarray):
        return item.content[None], False
    image = _opened(item)
    if reader.size is not None and image.size != (reader.size, reader.size):
        raise DataError(
            f"{item.where}: an image of {image.width} x {image.height} pixels in a set of "
            f"{reader.size} x {reader.size}; leave out `images.size` in the card if its images "
            "differ in size"
        )
    wanted = MODES[reader.channels]
    converted = image.mode != wanted
    if converted:
        if reader.other_modes == "refuse" or image.mode not in CONVERTIBLE:
            raise DataError(
                f"{item.where}: an image of mode {image.mode} in a set of mode {wanted}"
                + (
                    '; `images.other_modes = "convert"` in the card would convert and count it'
                    if image.mode in CONVERTIBLE
                    else ""
                )
            )
        image = image.convert(wanted)
    return _array(image, reader.channels), converted


def square(pixels: Pixels, side: int) -> Pixels:
    """The centre square of an image, resized to `side` (Pillow's bicubic filter) if it has another.

    Returns:
        (channels, side, side) uint8.
    """
    channels, height, width = pixels.shape
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    cut = pixels[:, top : top + short, left : left + short]
    if short == side:
        return cut
    from PIL import Image

    image = Image.fromarray(
        np.ascontiguousarray(cut[0] if channels == 1 else cut.transpose(1, 2, 0))
    )
    return _array(image.resize((side, side), Image.Resampling.BICUBIC), channels)


def _opened(item: Item) -> Image:
    from PIL import Image

    assert not isinstance(item.content, np.ndarray)  # noqa: S101 - the caller has looked
    content = item.content if isinstance(item.content, bytes) else _bytes_of(item.content)
    try:
        if not content:
            raise ValueError("it is empty")
        image: Image.Image = Image.open(io.BytesIO(content))
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # the decoders of some forms raise RuntimeError, AttributeError, ...
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise CorruptImageError(f"{item.where}: no image that can be decoded ({first})") from error
    return image


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:  # the disk's fault, so no corrupt image that may be skipped
        raise DataError(f"{path}: {error.strerror or error}") from error


def _array(image: Image, channels: int) -> Pixels:
    values = np.asarray(image, np.uint8)
    return values[None] if channels == 1 else values.transpose(2, 0, 1)
