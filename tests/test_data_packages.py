"""The real packages, where they have been fetched: counts, splits, duplicates."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import is_available, package_path
from benchmarks.data.load import load_text
from benchmarks.data.readers import read_rows
from benchmarks.data.splits import compute_splits, read_splits

pytestmark = pytest.mark.data

NAMES = ["r8", "rotten-tomatoes", "sts-b"]

PER_CLASS = {
    "r8": (
        [1436, 228, 2556, 37, 164, 185, 96, 226],
        [160, 25, 284, 4, 19, 21, 11, 25],
        [696, 121, 1083, 10, 81, 87, 36, 75],
    ),
    "rotten-tomatoes": ([3071, 3071], [341, 341], [853, 853]),
    "sts-b": ([1958, 1773, 1994], [647, 465, 388], [534, 386, 459]),
}


@pytest.fixture(params=NAMES)
def card(request: pytest.FixtureRequest) -> Card:
    card = find_card(request.param)
    if not is_available(card):
        pytest.skip(f"{card.name} is not fetched: `frugalbench fetch {card.name}`")
    return card


def test_committed_row_ids_are_what_the_rule_gives(card: Card) -> None:
    assert read_splits(card) == compute_splits(card, read_rows(card, package_path(card)))


def test_counts_per_class(card: Card) -> None:
    data = load_text(card.name, max_length=64)
    for split, counts in zip(
        (data.train, data.validation, data.test()), PER_CLASS[card.name], strict=True
    ):
        assert np.bincount(split.labels).tolist() == counts
        assert split.n_empty == 0
        assert split.lengths.max() <= 64
        assert split.lengths.min() >= 1
        assert split.tokens.max() < data.vocab_size


def test_no_training_text_is_in_an_evaluation_split(card: Card) -> None:
    rows = read_rows(card, package_path(card))
    splits = read_splits(card)

    def texts(row_ids: tuple[int, ...]) -> set[tuple[str, ...]]:
        return {tuple(t.lower().strip() for t in rows.texts[row]) for row in row_ids}

    assert not texts(splits.train) & (texts(splits.validation) | texts(splits.test))
    held_out = texts(splits.validation) | texts(splits.test)
    if card.task == "single":
        assert texts(splits.dropped) <= held_out


def test_r8_has_four_texts_in_train_and_test() -> None:
    card = find_card("r8")
    if not is_available(card):
        pytest.skip("r8 is not fetched: `frugalbench fetch r8`")
    rows = read_rows(card, package_path(card))
    test = {rows.texts[row] for row in rows.parts["test"]}
    shared = [row for row in rows.parts["train"] if rows.texts[row] in test]
    assert len(shared) == 5
    assert len({rows.texts[row] for row in shared}) == 4
    assert set(shared) <= set(read_splits(card).dropped)


def test_length_hints_are_measured(card: Card) -> None:
    lengths = load_text(card.name, max_length=100_000).train.lengths
    assert card.lengths is not None
    assert card.lengths.median == round(float(np.median(lengths)))
    assert card.lengths.p90 == round(float(np.percentile(lengths, 90)))


def test_loading_again_is_quick(card: Card) -> None:
    load_text(card.name, max_length=64)
    start = time.perf_counter()
    load_text(card.name, max_length=64)
    assert time.perf_counter() - start < 2.0  # about 0.1 s on an idle core
