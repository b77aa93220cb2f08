"""Images ready for training and measuring: splits of square pixel arrays of one size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ImageSplit:
    """Images of one split, in row-id order.

    Attributes:
        name: "train", "validation", "test" or "generated".
        row_ids: (n,) int64, position in the whole data set; stable between machines.
        pixels: (n, channels, side, side) uint8.
        labels: (n,) int64.
        mean, std: (channels,) float32 of the training pixels over 255; what a batch is normalised by.
    """

    name: str
    row_ids: npt.NDArray[np.int64]
    pixels: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float32]
    std: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(n,) side of each image in pixels; all are alike."""
        return np.full(len(self), self.pixels.shape[-1], np.int64)

    def take(self, indices: npt.ArrayLike) -> ImageSplit:
        """The images at these positions, in this order."""
        chosen = np.asarray(indices, np.int64)
        return replace(
            self,
            row_ids=self.row_ids[chosen],
            pixels=self.pixels[chosen],
            labels=self.labels[chosen],
        )
