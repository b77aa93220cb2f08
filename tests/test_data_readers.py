"""Reading packages: each format and option of a card's reader, and what a wrong file is told."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import TINY_CARD

from benchmarks.data.card import Card
from benchmarks.data.readers import Rows, read_rows
from benchmarks.errors import DataError

FILE = "tiny-1-py3-none-any.whl"
SINGLE = ["a\tred", "b\tblue", "a\tgreen", "b\tgrey", "a\tpink", "b\tbrown"]

Read = Callable[..., Rows]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a package made of the given files, or of one file of the given lines."""

    def read_package(
        content: list[str] | dict[str, bytes],
        *,
        path: str = "all.tsv",
        rows: int | None = None,
        **reader: Any,
    ) -> Rows:
        if isinstance(content, list):
            rows = len(content) if rows is None else rows
            content = {"all.tsv": "".join(f"{line}\n" for line in content).encode()}
        package = tmp_path / FILE
        with zipfile.ZipFile(package, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
        values = {
            **TINY_CARD,
            "source": {
                "kind": "package",
                "package": "tiny",
                "version": "1",
                "file": FILE,
                "sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
                "parts": [{"name": "all", "path": path, "rows": rows or len(content)}],
            },
            "reader": {"format": "tsv", "label": 0, "text": [1]} | reader,
            "splits": {"train": "all", "validation": 0.2, "test": 0.2},
            "counts": {"train": 1, "validation": 1, "test": 1, "dropped": 0},
        }
        return read_rows(Card.model_validate(values), package)

    return read_package


def _texts(rows: Rows) -> list[str]:
    return [text for (text,) in rows.texts]


def test_csv_with_quotes_and_a_filter(read: Read) -> None:
    lines = [
        "text,label,from",
        '"red, ""red""",0,us',
        "blue blue,1,us",
        "skip me,7,them",
        '"red\nblue",0,us',
    ]
    rows = read(
        lines,
        rows=3,
        format="csv",
        header_lines=1,
        label=1,
        text=[0],
        keep={"column": 2, "value": "us"},
        labels={"0": "a", "1": "b"},
    )
    assert _texts(rows) == ['red, "red"', "blue blue", "red\nblue"]
    assert rows.labels == [0, 1, 0]


def test_tabs_split_without_quoting(read: Read) -> None:
    rows = read(['a\t"red', 'b\tblue"', 'a\t"grey" \x0c x\r', ""], rows=3)
    assert _texts(rows) == ['"red', 'blue"', '"grey" \x0c x']


SCORES: dict[str, Any] = {"bins": [2.0], "score_range": [0.0, 5.0]}


def test_scores_are_binned_with_inclusive_upper_bounds(read: Read) -> None:
    assert read(["0.0\tx", "2.0\tx", "2.001\tx", "5.0\tx"], **SCORES).labels == [0, 0, 1, 1]


@pytest.mark.parametrize("value", ["5.1", "-0.1", "nan", "high"])
def test_a_score_out_of_range_is_told(read: Read, value: str) -> None:
    with pytest.raises(DataError, match=r"whl:all\.tsv, line 2: score .* \[0\.0, 5\.0\]"):
        read(["1\tred", f"{value}\tred"], **SCORES)


def test_a_label_out_of_range_is_told(read: Read) -> None:
    with pytest.raises(DataError) as caught:
        read([*SINGLE[:5], "c\tblue"])
    assert str(caught.value) == (
        f"{FILE}:all.tsv, line 6: label 'c' is out of range; known: 'a', 'b'"
    )


def test_a_short_line_is_told(read: Read) -> None:
    with pytest.raises(DataError, match=r"all\.tsv, line 3: 1 columns, needs 2"):
        read([*SINGLE[:2], "a"])


def test_a_wrong_row_count_is_told(read: Read) -> None:
    with pytest.raises(DataError, match=r"all\.tsv has 6 rows, the card of 'tiny' says 7"):
        read(SINGLE, rows=7)


FOLDERS: dict[str, Any] = {"format": "files", "encodings": ["utf-8", "latin-1"]}


def test_a_folder_tree_gives_a_row_a_file(read: Read) -> None:
    files = {
        "x/data/b/1.txt": "caf\u00e9 red\nred".encode("latin-1"),
        "x/data/a/2.txt": "caf\u00e9 blue".encode(),
        "x/data/a/1.txt": b"blue\r\nblue",
        "x/data/b/2.txt": b"red",
        "x/readme.md": b"no row",
    }
    rows = read(files, path="x/data/*/*.txt", rows=4, **FOLDERS)
    assert rows.labels == [0, 0, 1, 1]
    assert _texts(rows) == ["blue\r\nblue", "caf\u00e9 blue", "caf\u00e9 red\nred", "red"]
    with pytest.raises(DataError, match=r"holds no file x/nothing/\*\.txt"):
        read(files, path="x/nothing/*.txt", **FOLDERS)
    with pytest.raises(DataError, match=r"whl:x/data/c/1\.txt: label 'c' is out of range"):
        read({"x/data/c/1.txt": b"red"}, path="x/data/*/*.txt", **FOLDERS)


def test_only_the_encodings_that_the_card_allows_are_tried(read: Read) -> None:
    files = {"x/a/1.txt": "caf\u00e9".encode("latin-1")}
    assert _texts(read(files, path="x/a/*", **FOLDERS)) == ["caf\u00e9"]
    with pytest.raises(DataError, match=r"whl:x/a/1\.txt is not UTF-8"):
        read(files, path="x/a/*", format="files")


def test_a_part_inside_an_archive_inside_the_package(read: Read) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as tar:
        entry = tarfile.TarInfo("deep/all.tsv")
        content = "".join(f"{line}\n" for line in SINGLE).encode()
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    files = {"x/data.tar.gz": inner.getvalue(), "x/bad.tar.gz": inner.getvalue()[:60]}
    assert read(files, path="x/data.tar.gz!deep/all.tsv", rows=6).labels == [0, 1, 0, 1, 0, 1]
    for path, said in (
        ("x/data.tar.gz!deep/none.tsv", r"x/data\.tar\.gz holds no file deep/none\.tsv"),
        ("x/bad.tar.gz!deep/all.tsv", r"x/bad\.tar\.gz is damaged"),
        ("none.tar.gz!deep/all.tsv", r"tiny-1.* holds no file none\.tar\.gz"),
    ):
        with pytest.raises(DataError, match=said):
            read(files, path=path)
