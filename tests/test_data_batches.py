"""Batches: every row once, padding only where it must be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data.batches import POOL, Batch, collate, eval_batches, train_batches
from benchmarks.data.load import EncodedSplit

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=60)


def _split(lengths: list[int], *, pair: bool = False) -> EncodedSplit:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    total = int(offsets[-1])
    return EncodedSplit(
        name="train",
        row_ids=np.arange(len(lengths), dtype=np.int64) + 100,
        tokens=np.arange(3, 3 + total, dtype=np.int32),
        segments=(np.arange(total) % 2).astype(np.int8) if pair else None,
        offsets=offsets,
        labels=np.arange(len(lengths), dtype=np.int64) % 3,
    )


def _check(split: EncodedSplit, found: Iterable[Batch], batch_size: int) -> list[Batch]:
    found = list(found)
    rows: list[int] = []
    for batch in found:
        assert 0 < len(batch) <= batch_size
        assert batch.input_ids.dtype == batch.labels.dtype == torch.int64
        real = ~batch.key_padding_mask
        assert real.sum(1).max() == batch.input_ids.shape[1]  # no column is padding only
        for i, row in enumerate(batch.row_ids.tolist()):
            at = row - 100
            tokens = split.tokens[split.offsets[at] : split.offsets[at + 1]]
            n = len(tokens)
            assert batch.input_ids[i, :n].tolist() == tokens.tolist()
            assert not batch.input_ids[i, n:].any()
            assert real[i].tolist() == [True] * n + [False] * (batch.input_ids.shape[1] - n)
            assert batch.labels[i] == split.labels[at]
            if split.segments is not None:
                assert batch.segment_ids is not None
                segments = split.segments[split.offsets[at] : split.offsets[at + 1]]
                assert batch.segment_ids[i, :n].tolist() == segments.tolist()
                assert not batch.segment_ids[i, n:].any()
        rows += batch.row_ids.tolist()
    assert sorted(rows) == split.row_ids.tolist()
    return found


@given(lengths=LENGTHS, batch_size=st.integers(1, 8), pair=st.booleans(), seed=st.integers(0, 99))
def test_training_sees_every_row_once(
    lengths: list[int], batch_size: int, pair: bool, seed: int
) -> None:
    split = _split(lengths, pair=pair)
    generator = torch.Generator().manual_seed(seed)
    found = _check(split, train_batches(split, batch_size, generator), batch_size)
    assert len(found) == -(-len(lengths) // batch_size)


@given(lengths=LENGTHS, batch_size=st.integers(1, 8), pair=st.booleans())
def test_evaluation_sees_every_row_once_by_length(
    lengths: list[int], batch_size: int, pair: bool
) -> None:
    split = _split(lengths, pair=pair)
    found = _check(split, eval_batches(split, batch_size), batch_size)
    seen = [n for batch in found for n in (~batch.key_padding_mask).sum(1).tolist()]
    assert seen == sorted(lengths)


def _order(split: EncodedSplit, generator: torch.Generator) -> list[int]:
    return [row for b in train_batches(split, 4, generator) for row in b.row_ids.tolist()]


def test_the_generator_alone_decides_the_order() -> None:
    split = _split([1 + i % 7 for i in range(100)])
    torch.manual_seed(0)
    first = _order(split, torch.Generator().manual_seed(5))
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(5)
    assert _order(split, generator) == first
    assert _order(split, generator) != first  # the next epoch
    assert _order(split, torch.Generator().manual_seed(6)) != first


def test_training_batches_hold_inputs_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 800).tolist()
    split = _split(lengths)
    generator = torch.Generator().manual_seed(0)
    padded = sum(b.input_ids.numel() for b in train_batches(split, 8, generator))
    assert padded < 1.1 * sum(lengths)
    widths = [b.input_ids.shape[1] for b in train_batches(split, 8, generator)]
    assert widths != sorted(widths)


def test_more_rows_than_one_pool() -> None:
    split = _split([1 + i % 9 for i in range(POOL * 4 + 1)])
    found = _check(split, train_batches(split, 2, torch.Generator().manual_seed(0)), 2)
    assert len(found) == POOL * 2 + 1


def test_collate_keeps_the_order_asked_for() -> None:
    batch = collate(_split([2, 1, 3]), [2, 0])
    assert batch.row_ids.tolist() == [102, 100]
    assert batch.input_ids.tolist() == [[6, 7, 8], [3, 4, 0]]
    assert batch.key_padding_mask.tolist() == [[False] * 3, [False, False, True]]
    assert batch.segment_ids is None


def test_no_rows_give_no_batches() -> None:
    empty = _split([1]).take([])
    assert list(eval_batches(empty, 4)) == []
    assert list(train_batches(empty, 4, torch.Generator())) == []
