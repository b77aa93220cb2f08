"""Parquet files with the hub's columns: what is read, and what a wrong file is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up import TINY_CARD

from benchmarks.data.card import Card
from benchmarks.data.fetch import data_path
from benchmarks.data.identity import SEP, UNK
from benchmarks.data.load import load_card_text
from benchmarks.data.parquet import count_rows
from benchmarks.data.readers import Rows, read_rows
from benchmarks.errors import DataError
from benchmarks.running.files import sha256_of

TEXTS = ["red red", "blue blue", "red", "blue", "red blue red", "blue red blue"]
LABELS = [0, 1, 0, 1, 0, 1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))


def _write(path: Path, columns: dict[str, Any], names: list[str] | None = None) -> None:
    table = pa.table(columns)
    if names is not None:
        described = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(described)})
    pq.write_table(table, path, compression="zstd")


def _card(folder: Path, files: list[str], rows: list[int] | None = None, **changes: Any) -> Card:
    reader = {"format": "parquet", "label": "label", "text": ["text"]}
    values: dict[str, Any] = {
        **TINY_CARD,
        "source": {
            "kind": "parquet",
            "origin": "mirror",
            "repo": "some/tiny",
            "run_as": "tiny (mirror)",
            "folder": folder,
            "parts": [
                {
                    "name": "all",
                    "files": [
                        {
                            "path": file,
                            "sha256": sha256_of(folder / file),
                            "rows": rows[i] if rows else count_rows(folder / file),
                        }
                        for i, file in enumerate(files)
                    ],
                }
            ],
        },
        "reader": reader,
        "splits": {"train": "all", "validation": 0.3, "test": 0.3},
        "counts": {"train": 2, "validation": 2, "test": 2, "dropped": 0},
    }
    return Card.model_validate(values | changes)


def _rows(card: Card) -> Rows:
    return read_rows(card, data_path(card))


def test_shards_are_one_part_in_order(tmp_path: Path) -> None:
    _write(tmp_path / "one.parquet", {"label": LABELS[:4], "text": TEXTS[:4], "other": [1.0] * 4})
    _write(tmp_path / "two.parquet", {"text": TEXTS[4:], "label": LABELS[4:]}, ["a", "b"])
    card = _card(tmp_path, ["one.parquet", "two.parquet"])
    rows = _rows(card)
    assert [text for (text,) in rows.texts] == TEXTS
    assert rows.labels == LABELS
    assert rows.parts == {"all": range(6)}
    data = load_card_text(card, max_length=8)
    assert (len(data.train), len(data.validation), len(data.test())) == (2, 2, 2)


def test_columns_that_are_one_text_are_joined(tmp_path: Path) -> None:
    titles = ["Red", "", "x", "y", None, "z"]
    _write(tmp_path / "all.parquet", {"label": LABELS, "title": titles, "text": TEXTS})
    reader = {"format": "parquet", "label": "label", "text": ["title", "text"], "join": True}
    texts = _rows(_card(tmp_path, ["all.parquet"], reader=reader)).texts
    assert texts[:3] == [("Red red red",), ("blue blue",), ("x red",)]
    assert texts[4] == ("red blue red",)


def test_rows_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    _write(tmp_path / "all.parquet", {"label": [0, -1, 1, -1, 0], "text": TEXTS[:5]})
    reader = {"format": "parquet", "label": "label", "text": ["text"], "drop_label": -1}
    rows = _rows(_card(tmp_path, ["all.parquet"], reader=reader))
    assert rows.labels == [0, 1, 0]
    assert [text for (text,) in rows.texts] == [TEXTS[0], TEXTS[2], TEXTS[4]]
    assert rows.n_unlabelled == 2
    assert rows.parts == {"all": range(3)}


def test_a_pair_with_an_empty_side_is_kept_as_one_unknown_token(tmp_path: Path) -> None:
    columns = {
        "label": [0, 1, 0, 1],
        "premise": ["red red", "blue blue", "", "red"],
        "hypothesis": ["red", "blue", "blue", None],
    }
    _write(tmp_path / "all.parquet", columns)
    card = _card(
        tmp_path,
        ["all.parquet"],
        task="pair",
        reader={"format": "parquet", "label": "label", "text": ["premise", "hypothesis"]},
        splits={"train": "all", "validation": 0.3, "test": 0.3},
        counts={"train": 2, "validation": 0, "test": 2, "dropped": 0},
    )
    data = load_card_text(card, max_length=8)
    test = data.test()
    assert test.n_empty == 2
    blue = 3 if data.train.tokens[0] != 3 else 4
    first = test.tokens[: test.offsets[1]].tolist()
    assert first == [UNK, SEP, blue]
    second = test.tokens[test.offsets[1] :].tolist()
    assert second[1:] == [SEP, UNK]


def test_other_columns_are_named_beside_those_expected(tmp_path: Path) -> None:
    _write(tmp_path / "all.parquet", {"labels": LABELS, "sentence": TEXTS})
    with pytest.raises(DataError) as caught:
        _rows(_card(tmp_path, ["all.parquet"]))
    assert str(caught.value) == (
        "all.parquet has the columns labels, sentence; the card of 'tiny' expects label, text: "
        "label, text is missing"
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"label": ["a"] * 6, "text": TEXTS}, "column label holds string, 'tiny' expects whole"),
        ({"label": [0.5] * 6, "text": TEXTS}, "column label holds double, 'tiny' expects whole"),
        ({"label": LABELS, "text": LABELS}, "column text holds int64, 'tiny' expects text"),
    ],
)
def test_columns_of_another_type_are_told(
    tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    _write(tmp_path / "all.parquet", columns)
    with pytest.raises(DataError, match=said):
        _rows(_card(tmp_path, ["all.parquet"]))


@pytest.mark.parametrize("keep", [0.5, 0.98])
def test_a_file_cut_short_is_told(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "all.parquet"
    _write(path, {"label": LABELS, "text": TEXTS})
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DataError, match=r"all\.parquet is no whole Parquet file: damaged, or cut"):
        _rows(_card(tmp_path, ["all.parquet"], rows=[6]))


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    _write(path, {"label": LABELS * 500, "text": [f"{i} words" for i in range(3000)]})
    content = bytearray(path.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"all\.parquet is no whole Parquet file"):
        _rows(_card(tmp_path, ["all.parquet"], rows=[3000]))


@pytest.mark.parametrize("label", [2, -1, None])
def test_a_label_out_of_range_is_told(tmp_path: Path, label: int | None) -> None:
    _write(tmp_path / "all.parquet", {"label": [0, 1, label], "text": TEXTS[:3]})
    with pytest.raises(DataError) as caught:
        _rows(_card(tmp_path, ["all.parquet"]))
    assert str(caught.value) == (
        f"all.parquet, row 2: label {label} is out of range; 'tiny' has 0 to 1"
    )


@pytest.mark.parametrize("names", [["b", "a"], ["a", "b", "c"]])
def test_label_names_in_the_file_that_say_otherwise_are_told(
    tmp_path: Path, names: list[str]
) -> None:
    _write(tmp_path / "all.parquet", {"label": LABELS, "text": TEXTS}, names)
    with pytest.raises(DataError, match=rf"has the classes {', '.join(names)}; the card.* a, b"):
        _rows(_card(tmp_path, ["all.parquet"]))


def test_a_wrong_row_count_is_told(tmp_path: Path) -> None:
    _write(tmp_path / "all.parquet", {"label": LABELS, "text": TEXTS})
    with pytest.raises(DataError, match=r"has 6 rows, 'tiny \(mirror\)' must have 5"):
        _rows(_card(tmp_path, ["all.parquet"], rows=[5]))
