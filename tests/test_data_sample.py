"""A fixed sample of a split: as many rows as asked for, of all classes however the set lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data.images import ImageSplit
from benchmarks.data.sample import at_most


def split_of(labels: np.ndarray) -> ImageSplit:
    n = len(labels)
    return ImageSplit(
        name="validation",
        row_ids=np.arange(n, dtype=np.int64) * 3,
        pixels=np.zeros((n, 1, 1, 1), np.uint8),
        labels=labels.astype(np.int64),
        mean=np.zeros(1, np.float32),
        std=np.ones(1, np.float32),
    )


@pytest.mark.parametrize("lies", ["by class", "turn by turn"])
def test_all_classes_have_their_share_in_the_sample(lies: str) -> None:
    labels = np.arange(5000) % 10
    found = at_most(split_of(np.sort(labels) if lies == "by class" else labels), 1000)
    counts = np.bincount(found.labels, minlength=10)
    # within four standard deviations of a hypergeometric draw
    assert (abs(counts - 100) < 4 * np.sqrt(1000 * 0.1 * 0.9 * 0.8)).all()


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_sample_is_in_order_without_repeats_and_grows_by_nesting(n: int, most: int) -> None:
    split = split_of(np.zeros(n))
    found = at_most(split, most)
    assert len(found) == min(n, most)
    assert (np.diff(found.row_ids) > 0).all()
    assert set(found.row_ids) <= set(at_most(split, most + 1).row_ids)


def test_the_sample_never_changes() -> None:
    assert at_most(split_of(np.zeros(20)), 5).row_ids.tolist() == [6, 18, 27, 33, 42]
