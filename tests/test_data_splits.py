"""Split rules, nested subsets and the text form of row ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import TINY_CARD

from benchmarks.data.card import Card, load_card
from benchmarks.data.readers import Rows
from benchmarks.data.splits import (
    Splits,
    compute_splits,
    from_ranges,
    nested_subset,
    read_splits,
    to_ranges,
    write_splits,
)
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.paths import resource_dir

PACKAGED = [
    card
    for path in sorted(resource_dir("datasets").glob("*.toml"))
    if (card := load_card(path)).source.kind == "package"
]


def _card(
    validation: float | str, test: float | str, parts: list[str], *, unique: bool = False
) -> Card:
    return Card.model_validate(
        {
            **TINY_CARD,
            "source": {
                "kind": "package",
                "package": "tiny",
                "version": "1",
                "file": "tiny-1-py3-none-any.whl",
                "sha256": "0" * 64,
                "parts": [{"name": name, "path": name, "rows": 1} for name in parts],
            },
            "reader": {"format": "tsv", "label": 0, "text": [1]},
            "splits": {
                "train": parts[0],
                "validation": validation,
                "test": test,
                "unique": unique,
            },
            "counts": {"train": 1, "validation": 1, "test": 1, "dropped": 0},
        }
    )


@given(st.sets(st.integers(0, 300)))
def test_ranges_round_trip(ids: set[int]) -> None:
    assert from_ranges(to_ranges(sorted(ids))) == sorted(ids)


def test_ranges_are_compact() -> None:
    assert to_ranges([0, 1, 2, 5, 7, 8]) == "0-2 5 7-8"
    assert to_ranges([]) == ""


@pytest.mark.parametrize("text", ["3 1", "1 1", "5-2", "0-3 2", "x", "-1"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_ranges(text)


@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=80),
    small=st.floats(0.01, 1),
    large=st.floats(0.01, 1),
)
def test_subsets_are_nested_and_hold_every_class(
    labels: list[int], small: float, large: float
) -> None:
    small, large = sorted([small, large])
    rows = [10 * i for i in range(len(labels))]
    few, many = (set(nested_subset(rows, labels, f, "tiny")) for f in (small, large))
    assert few <= many <= set(rows)
    assert {labels[row // 10] for row in few} == set(labels)
    assert nested_subset(rows, labels, 1.0, "tiny") == rows


def test_subsets_are_stratified_and_fixed() -> None:
    labels = [0] * 80 + [1] * 20
    chosen = nested_subset(range(100), labels, 0.25, "tiny")
    assert sum(row < 80 for row in chosen) == 20
    assert len(chosen) == 25
    assert chosen != nested_subset(range(100), labels, 0.25, "other")
    # pinned: another order would silently change every result at a fraction below 1
    assert nested_subset(range(10), [0] * 10, 0.3, "tiny") == [2, 6, 7]


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01])
def test_fractions_out_of_range_are_refused(fraction: float) -> None:
    with pytest.raises(DataError, match=r"train_fraction must lie in \(0, 1\]"):
        nested_subset([0], [0], fraction, "tiny")


@given(
    texts=st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=60),
    data=st.data(),
)
def test_shares_keep_evaluation_texts_out_of_training(
    texts: list[str], data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(texts), max_size=len(texts)))
    rows = Rows([(text,) for text in texts], labels, {"all": range(len(texts))})
    splits = compute_splits(_card(0.1, 0.2, ["all"]), rows)
    every = [*splits.train, *splits.validation, *splits.test, *splits.dropped]
    assert sorted(every) == list(range(len(texts)))
    held_out = {texts[row] for row in (*splits.validation, *splits.test)}
    assert not held_out & {texts[row] for row in splits.train}
    assert not {texts[r] for r in splits.validation} & {texts[r] for r in splits.test}
    assert {texts[row] for row in splits.dropped} <= held_out


def test_the_last_rows_of_each_label_are_held_out() -> None:
    labels = [0, 1] * 20
    rows = Rows([(str(i),) for i in range(40)], labels, {"all": range(40)})
    splits = compute_splits(_card(0.1, 0.2, ["all"]), rows)
    assert splits.test == tuple(range(32, 40))
    assert splits.validation == tuple(range(28, 32))
    assert splits.train == tuple(range(28))


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_the_only_row_of_a_label_stays_in_training(share: float) -> None:
    rows = Rows([(str(i),) for i in range(7)], [0, 0, 0, 0, 0, 1, 0], {"all": range(7)})
    splits = compute_splits(_card(share, share, ["all"]), rows)
    assert 5 in splits.train
    assert {rows.labels[row] for row in splits.train} == {0, 1}


def test_where_rows_must_be_unique_the_first_of_each_text_is_kept() -> None:
    texts = ["x", "y", "X ", "z", "y", "v", "w", "u", "t", "s"]
    rows = Rows([(text,) for text in texts], [0] * 10, {"all": range(10)})
    splits = compute_splits(_card(0.2, 0.25, ["all"], unique=True), rows)
    assert splits.dropped == (2, 4)
    assert splits.test == (8, 9)
    assert splits.validation == (7,)
    assert splits.train == (0, 1, 3, 5, 6)


def test_official_splits_stay_whole() -> None:
    texts = ["Same  text", "a", "b", "same TEXT", "c", "c", "b"]
    rows = Rows(
        [(text,) for text in texts],
        [0] * 7,
        {"train": range(3), "dev": range(3, 5), "test": range(5, 7)},
    )
    splits = compute_splits(_card("dev", "test", ["train", "dev", "test"]), rows)
    assert splits == Splits(train=(1,), validation=(3, 4), test=(5, 6), dropped=(0, 2))


def test_a_swapped_pair_is_the_same_text() -> None:
    rows = Rows(
        [("a", "b"), ("a", "c"), ("x", "y"), ("b", "a")],
        [0] * 4,
        {"train": range(2), "dev": range(2, 3), "test": range(3, 4)},
    )
    splits = compute_splits(_card("dev", "test", ["train", "dev", "test"]), rows)
    assert splits.dropped == (0,)


@pytest.mark.parametrize("card", PACKAGED, ids=lambda card: card.name)
def test_committed_row_ids_fit_their_card(card: Card) -> None:
    splits = read_splits(card)
    assert card.counts is not None
    total = sum(part.rows for part in card.source.parts)  # type: ignore[union-attr]
    assert sum(len(ids) for ids in vars(splits).values()) == total
    assert card.n_rows("train") == len(splits.train)


def _stored(tmp_path: Path, text: str) -> Card:
    card = _card(0.1, 0.2, ["all"])
    path = tmp_path / "splits" / "tiny.json"
    path.parent.mkdir()
    path.write_text(text)
    return Card.model_validate(card.model_dump(by_alias=True), context={"folder": tmp_path})


def test_row_ids_are_written_and_read(tmp_path: Path) -> None:
    splits = Splits(train=(0,), validation=(1,), test=(2,), dropped=())
    card = _stored(tmp_path, "")
    write_splits(splits, card.splits_file)
    assert read_splits(card) == splits


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train": "0 1"}, "counts.train says 1"),
        ({"train": "2"}, "in two splits"),
        ({"train": "b"}, "not a file of row ids"),
        ({"train": [0]}, "not a file of row ids"),
    ],
)
def test_damaged_row_ids_are_told(tmp_path: Path, change: dict[str, object], said: str) -> None:
    stored = {"train": "0", "validation": "1", "test": "2", "dropped": ""} | change
    with pytest.raises(InvalidFileError, match=r"splits/tiny\.json: ") as caught:
        read_splits(_stored(tmp_path, json.dumps(stored)))
    assert said in str(caught.value)


def test_missing_row_ids_say_how_to_write_them() -> None:
    with pytest.raises(InvalidFileError, match=r"commit_splits tiny"):
        read_splits(_card(0.1, 0.2, ["all"]))
