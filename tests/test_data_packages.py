"""The real packages, where they have been fetched: counts, splits, duplicates."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data.archives import read_member
from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import is_available, package_path
from benchmarks.data.load import load_text
from benchmarks.data.readers import read_rows
from benchmarks.data.splits import compute_splits, read_splits

pytestmark = pytest.mark.data

NAMES = [
    "20-newsgroups",
    "bbc-news",
    "imdb-25k",
    "r52",
    "r8",
    "rotten-tomatoes",
    "sts-b",
    "vader-movie",
]


def _ints(text: str) -> list[int]:
    return [int(word) for word in text.split()]


# rows of each class in train, validation and test
PER_CLASS = {
    "20-newsgroups": (
        _ints("432 525 514 531 520 533 524 535 536 537 540 535 532 535 534 538 490 508 418 339"),
        _ints("48 58 57 59 58 59 58 59 60 60 60 60 59 59 59 60 55 56 47 38"),
        _ints("319 389 394 392 385 392 390 395 398 397 399 396 393 396 394 398 364 376 310 251"),
    ),
    "bbc-news": ([362, 265, 290, 362, 250], [40, 30, 32, 40, 28], [101, 74, 81, 100, 69]),
    "imdb-25k": ([8981, 8991], [998, 1000], [2500, 2500]),
    "r52": (
        _ints(
            "1436 28 20 5 41 81 26 13 49 3 228 3 2556 4 9 52 63 37 5 13 6 4 164 30 23 2 33 4 10 12 "
            "6 5 185 110 22 3 12 12 1 2 33 17 28 96 8 85 2 15 226 17 13 7"
        ),
        _ints(
            "160 3 2 1 5 9 3 2 5 0 25 0 284 0 1 6 7 4 1 2 1 1 19 3 3 0 4 0 1 1 1 1 21 12 2 0 1 1 0 "
            "0 4 2 3 11 1 10 0 2 25 2 1 1"
        ),
        _ints(
            "696 19 9 5 15 22 13 9 17 1 121 3 1083 7 8 15 20 10 4 2 4 1 81 11 12 1 12 4 3 5 4 1 87 "
            "28 12 1 9 6 2 3 12 1 9 36 6 25 3 10 75 11 9 5"
        ),
    ),
    "vader-movie": (
        [1544, 1521, 1517, 1586, 1466],
        [172, 169, 169, 176, 163],
        [429, 423, 421, 440, 407],
    ),
    "r8": (
        [1436, 228, 2556, 37, 164, 185, 96, 226],
        [160, 25, 284, 4, 19, 21, 11, 25],
        [696, 121, 1083, 10, 81, 87, 36, 75],
    ),
    "rotten-tomatoes": ([3071, 3071], [341, 341], [853, 853]),
    "sts-b": ([1958, 1773, 1994], [647, 465, 388], [534, 386, 459]),
}


# a test text without any word of the training texts
N_EMPTY = {("20-newsgroups", "test"): 1, ("vader-movie", "test"): 1}


@pytest.fixture(params=NAMES)
def card(request: pytest.FixtureRequest) -> Card:
    return _here(request.param)


# encoding all reviews takes a while where they are not in the cache yet
@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.slow if n == "imdb-25k" else ()) for n in NAMES]
)
def encoded(request: pytest.FixtureRequest) -> Card:
    return _here(request.param)


def _here(name: str) -> Card:
    card = find_card(name)
    if not is_available(card):
        pytest.skip(f"{name} is not fetched: `frugalbench fetch {name}`")
    return card


def test_committed_row_ids_are_what_the_rule_gives(card: Card) -> None:
    assert read_splits(card) == compute_splits(card, read_rows(card, package_path(card)))


def test_counts_per_class(card: Card) -> None:
    rows, splits = read_rows(card, package_path(card)), read_splits(card)
    for row_ids, counts in zip(
        (splits.train, splits.validation, splits.test), PER_CLASS[card.name], strict=True
    ):
        found = np.bincount([rows.labels[row] for row in row_ids], minlength=len(card.classes))
        assert found.tolist() == counts


def test_encoded_splits(encoded: Card) -> None:
    data = load_text(encoded.name, max_length=64)
    for split, counts in zip(
        (data.train, data.validation, data.test()), PER_CLASS[encoded.name], strict=True
    ):
        assert np.bincount(split.labels, minlength=len(data.classes)).tolist() == counts
        assert split.n_empty == N_EMPTY.get((encoded.name, split.name), 0)
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
    if card.task == "single" and card.splits is not None and not card.splits.unique:
        assert texts(splits.dropped) <= held_out


def test_r8_has_four_texts_in_train_and_test() -> None:
    card = _here("r8")
    rows = read_rows(card, package_path(card))
    test = {rows.texts[row] for row in rows.parts["test"]}
    shared = [row for row in rows.parts["train"] if rows.texts[row] in test]
    assert len(shared) == 5
    assert len({rows.texts[row] for row in shared}) == 4
    assert set(shared) <= set(read_splits(card).dropped)


@pytest.mark.parametrize("name", ["bbc-news", "vader-movie"])
def test_where_rows_must_be_unique_each_text_is_there_once(name: str) -> None:
    card = _here(name)
    rows, splits = read_rows(card, package_path(card)), read_splits(card)
    kept = [*splits.train, *splits.validation, *splits.test]
    texts = {" ".join(rows.texts[row][0].lower().split()) for row in kept}
    assert len(texts) == len(kept)
    assert len(kept) + len(splits.dropped) == len(rows.labels)


def test_the_only_training_text_of_a_class_stays_in_train() -> None:
    card = _here("r52")
    rows, splits = read_rows(card, package_path(card)), read_splits(card)
    platinum = card.classes.index("platinum")
    everywhere = [row for row in rows.parts["train"] if rows.labels[row] == platinum]
    assert len(everywhere) == 1
    assert set(everywhere) <= set(splits.train)


def test_vader_s_bounds_are_the_quintiles_of_its_ratings() -> None:
    card = _here("vader-movie")
    (part,) = card.source.parts  # type: ignore[union-attr]
    lines = read_member(package_path(card), part.path).decode().splitlines()  # type: ignore[union-attr]
    ratings = sorted(float(line.split("\t")[1]) for line in lines)
    assert card.reader is not None
    assert card.reader.bins == tuple(ratings[2121 * k - 1] for k in range(1, 5))


def test_one_article_of_bbc_is_latin_1_and_the_others_are_not() -> None:
    card = _here("bbc-news")
    texts = [text for (text,) in read_rows(card, package_path(card)).texts]
    assert any("\u00a3600m" in text for text in texts)
    assert not any("\u00c2\u00a3" in text for text in texts)


def test_vader_and_rotten_tomatoes_share_texts() -> None:
    vader, tomatoes = (
        {
            "".join(filter(str.isalnum, text.lower()))
            for (text,) in read_rows(c, package_path(c)).texts
        }
        for c in (_here("vader-movie"), _here("rotten-tomatoes"))
    )
    assert len(vader & tomatoes) > 0.9 * len(tomatoes)


def test_length_hints_are_measured(encoded: Card) -> None:
    lengths = load_text(encoded.name, max_length=100_000).train.lengths
    assert encoded.lengths is not None
    assert encoded.lengths.median == round(float(np.median(lengths)))
    assert encoded.lengths.p90 == round(float(np.percentile(lengths, 90)))
