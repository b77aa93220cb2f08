"""Batches: of texts of like length, padded to the longest of the batch; of images as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.data.identity import PAD
from benchmarks.data.images import ImageSplit
from benchmarks.data.load import EncodedSplit

Split = EncodedSplit | ImageSplit

POOL = 50
"""Batches that are sorted by length together in training."""


@dataclass(frozen=True)
class Batch:
    """Texts of one step.

    Attributes:
        input_ids: (batch, longest) int64.
        key_padding_mask: (batch, longest) bool, True at padding.
        segment_ids: (batch, longest) int64 for pairs, else None.
        labels: (batch,) int64.
        row_ids: (batch,) int64.
    """

    input_ids: Tensor
    key_padding_mask: Tensor
    segment_ids: Tensor | None
    labels: Tensor
    row_ids: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """What a text model takes."""
        return self.input_ids, self.key_padding_mask, self.segment_ids

    @property
    def lengths(self) -> list[int]:
        """Tokens of each input, padding excluded."""
        return [int(n) for n in (~self.key_padding_mask).sum(dim=1)]


@dataclass(frozen=True)
class ImageBatch:
    """Images of one step.

    Attributes:
        pixel_values: (batch, channels, side, side) float32, normalised.
        labels: (batch,) int64.
        row_ids: (batch,) int64.
    """

    pixel_values: Tensor
    labels: Tensor
    row_ids: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> tuple[Tensor]:
        """What an image model takes."""
        return (self.pixel_values,)

    @property
    def lengths(self) -> list[int]:
        """Side of each image in pixels."""
        return [self.pixel_values.shape[-1]] * len(self)


AnyBatch = Batch | ImageBatch


def collate(split: Split, indices: npt.ArrayLike) -> AnyBatch:
    """The inputs at these positions of the split; texts are padded to the longest of them."""
    chosen = np.asarray(indices, np.int64)
    return _images(split, chosen) if isinstance(split, ImageSplit) else _texts(split, chosen)


def _images(split: ImageSplit, chosen: npt.NDArray[np.int64]) -> ImageBatch:
    scale = (1 / (255 * split.std)).astype(np.float32)
    shift = (split.mean / split.std).astype(np.float32)
    pixels = split.pixels[chosen] * scale[:, None, None] - shift[:, None, None]
    return ImageBatch(
        pixel_values=torch.from_numpy(pixels),
        labels=torch.from_numpy(split.labels[chosen]),
        row_ids=torch.from_numpy(split.row_ids[chosen]),
    )


def _texts(split: EncodedSplit, chosen: npt.NDArray[np.int64]) -> Batch:
    lengths = split.lengths[chosen]
    positions = np.arange(lengths.max(initial=0))
    padding = positions >= lengths[:, None]
    where = np.where(padding, 0, split.offsets[chosen][:, None] + positions)

    def padded(values: npt.NDArray[np.int32] | npt.NDArray[np.int8], fill: int) -> Tensor:
        return torch.from_numpy(np.where(padding, fill, values[where]).astype(np.int64))

    return Batch(
        input_ids=padded(split.tokens, PAD),
        key_padding_mask=torch.from_numpy(padding),
        segment_ids=None if split.segments is None else padded(split.segments, 0),
        labels=torch.from_numpy(split.labels[chosen]),
        row_ids=torch.from_numpy(split.row_ids[chosen]),
    )


def train_batches(split: Split, batch_size: int, generator: torch.Generator) -> Iterator[AnyBatch]:
    """One epoch: every input once, in an order that the generator alone decides.

    Inputs are shuffled, sorted by length inside pools of `POOL` batches, cut into batches, and the
    batches shuffled, so that batches need little padding and still differ from epoch to epoch.
    """
    order = torch.randperm(len(split), generator=generator).numpy()
    groups: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(order), POOL * batch_size):
        pool = order[start : start + POOL * batch_size]
        pool = pool[np.argsort(split.lengths[pool], kind="stable")]
        groups += [pool[at : at + batch_size] for at in range(0, len(pool), batch_size)]
    for index in torch.randperm(len(groups), generator=generator).tolist():
        yield collate(split, groups[index])


def eval_batches(split: Split, batch_size: int) -> Iterator[AnyBatch]:
    """Every input once, from the shortest to the longest; equal lengths in split order."""
    order = np.argsort(split.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield collate(split, order[start : start + batch_size])
