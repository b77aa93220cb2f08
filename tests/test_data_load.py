"""The whole way from a package to token ids, with tiny packages made here."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data import load as loading
from benchmarks.data.card import Card, load_card
from benchmarks.data.identity import SEP, UNK, card_hash
from benchmarks.data.load import EncodedSplit, load_card_text
from benchmarks.errors import DataError
from benchmarks.paths import resource_dir

Make = Callable[..., Card]

# "rare" stands once only, so it is no word of the vocabulary
SINGLE = ["a\tred red rare", "b\tblue blue", "a\tred  blue RED", "b\tblue red", "a\tred", "b\tblue"]
PAIRS = ["a\tred red\tblue blue", "b\tblue\tred red red", "a\tred\tblue", "b\tblue\tred"]
ROW_IDS = {"train": "0-3", "validation": "4", "test": "5", "dropped": ""}
PAIR_IDS = {"train": "0-1", "validation": "2", "test": "3", "dropped": ""}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a package that lies in the cache as if fetched, and its card and row ids."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(cache))

    def build(
        lines: list[str],
        *,
        row_ids: dict[str, str] | None = None,
        file: str = "tiny-1-py3-none-any.whl",
        inner: str = "all.tsv",
        **changes: Any,
    ) -> Card:
        package = cache / "packages" / file
        package.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode()
        if file.endswith(".tar.gz"):
            with tarfile.open(package, "w:gz") as tar:
                entry = tarfile.TarInfo(inner)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        else:
            with zipfile.ZipFile(package, "w") as archive:
                # a fixed date, so that the same lines give the same hash
                archive.writestr(zipfile.ZipInfo(inner), content)
        pair = lines[0].count("\t") == 2
        row_ids = row_ids or (PAIR_IDS if pair else ROW_IDS)
        counts = {
            name: sum(int(r.split("-")[-1]) - int(r.split("-")[0]) + 1 for r in text.split())
            for name, text in row_ids.items()
        }
        (tmp_path / "splits").mkdir(exist_ok=True)
        (tmp_path / "splits" / "tiny.json").write_text(json.dumps(row_ids))
        values = {
            "schema": 1,
            "name": "tiny",
            "title": "Tiny",
            "task": "pair" if pair else "single",
            "classes": ["a", "b"],
            "licence": {"package": "MIT", "data": "MIT"},
            "source": {
                "kind": "package",
                "package": "tiny",
                "version": "1",
                "file": file,
                "sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
                "parts": [{"name": "all", "path": "all.tsv", "rows": len(lines)}],
            },
            "reader": {"format": "tsv", "label": 0, "text": [1, 2] if pair else [1]},
            "splits": {"train": "all", "validation": 0.2, "test": 0.2},
            "counts": counts,
        }
        return Card.model_validate(values | changes, context={"folder": tmp_path})

    return build


def _inputs(split: EncodedSplit) -> list[list[int]]:
    return [
        split.tokens[a:b].tolist()
        for a, b in zip(split.offsets[:-1], split.offsets[1:], strict=True)
    ]


def test_texts_become_tokens(make: Make) -> None:
    data = load_card_text(make(SINGLE), max_length=8)
    red, blue = 3, 4  # by frequency in the training rows: red 6, blue 4
    assert data.vocab_size == 5
    assert _inputs(data.train) == [[red, red, UNK], [blue, blue], [red, blue, red], [blue, red]]
    assert data.train.labels.tolist() == [0, 1, 0, 1]
    assert data.train.row_ids.tolist() == [0, 1, 2, 3]
    assert _inputs(data.test()) == [[blue]]
    assert data.train.segments is None
    assert data.n_segments == 1
    assert (data.train.tokens.dtype, data.train.offsets.dtype) == (np.int32, np.int64)


def test_the_vocabulary_comes_from_training_rows_only(make: Make) -> None:
    lines = [*SINGLE[:4], "a\tgreen green green red", "b\tgreen green blue"]
    data = load_card_text(make(lines), max_length=8)
    assert data.vocab_size == 5
    assert _inputs(data.validation) == [[UNK, UNK, UNK, 3]]
    assert _inputs(data.test()) == [[UNK, UNK, 4]]


def test_an_empty_text_becomes_one_unknown_token(make: Make) -> None:
    lines = [*SINGLE[:4], "a\t", "b\tzebra zebra"]
    data = load_card_text(make(lines), max_length=8)
    assert _inputs(data.validation) == _inputs(data.test()) == [[UNK]]
    assert (data.train.n_empty, data.validation.n_empty, data.test().n_empty) == (0, 1, 1)


def test_a_long_text_is_cut_and_counted(make: Make) -> None:
    data = load_card_text(make(SINGLE), max_length=2)
    assert data.train.lengths.tolist() == [2, 2, 2, 2]
    assert data.train.n_truncated == 2
    assert data.validation.n_truncated == 0


def test_pairs_are_joined_by_a_separator(make: Make) -> None:
    data = load_card_text(make(PAIRS), max_length=16)
    red, blue = 3, 4
    assert _inputs(data.train) == [
        [red, red, SEP, blue, blue],
        [blue, SEP, red, red, red],
    ]
    assert data.train.segments is not None
    assert data.train.segments.tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 1, 1]
    assert data.n_segments == 2
    assert (data.train.n_truncated, data.train.n_empty) == (0, 0)


def test_a_pair_is_cut_on_its_longer_text_first(make: Make) -> None:
    data = load_card_text(make(PAIRS), max_length=4)
    red, blue = 3, 4
    assert _inputs(data.train) == [[red, red, SEP, blue], [blue, SEP, red, red]]
    assert data.train.n_truncated == 2


def test_an_empty_side_of_a_pair_counts_once(make: Make) -> None:
    data = load_card_text(make([*PAIRS[:2], "a\t\t", "b\tblue\t"]), max_length=8)
    assert _inputs(data.validation) == [[UNK, SEP, UNK]]
    assert data.validation.n_empty == 1


@given(first=st.integers(1, 12), second=st.integers(1, 12), max_length=st.integers(3, 30))
def test_trimming_a_pair_wastes_no_room(first: int, second: int, max_length: int) -> None:
    full = loading.FullTexts(
        row_ids=np.zeros(1, np.int64),
        labels=np.zeros(1, np.int64),
        tokens=np.arange(10, 10 + first + second, dtype=np.int32),
        offsets=np.array([0, first, first + second], np.int64),
        n_empty=0,
        vocab_size=50,
    )
    card = load_card(resource_dir("datasets") / "sts-b.toml")
    split = loading._cut(full, "train", card, max_length)
    tokens = split.tokens.tolist()
    at = tokens.index(SEP)
    assert len(tokens) == min(max_length, first + 1 + second)
    assert tokens[:at] == list(range(10, 10 + at))
    assert tokens[at + 1 :] == list(range(10 + first, 10 + first + len(tokens) - at - 1))
    cut_first, cut_second = first - at, second - (len(tokens) - at - 1)
    if cut_first and cut_second:
        assert abs(at - (len(tokens) - at - 1)) <= 1
    elif cut_first:
        assert at >= second - 1
    elif cut_second:
        assert len(tokens) - at - 1 >= first - 1


def test_test_is_not_read_before_it_is_asked_for(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read = loading.EncodedCache.read

    def noted(self: loading.EncodedCache, split: Any) -> loading.FullTexts:
        asked.append(split)
        return read(self, split)

    monkeypatch.setattr(loading.EncodedCache, "read", noted)
    data = load_card_text(make(SINGLE), max_length=8)
    assert asked == ["train", "validation"]
    assert data.test() is data.test()
    assert asked == ["train", "validation", "test"]


def test_what_is_cached_is_what_was_read(make: Make, tmp_path: Path) -> None:
    card = make(PAIRS)
    before = load_card_text(card, max_length=4)
    stored = sorted((tmp_path / "cache" / "encoded").rglob("*.npz"))
    assert [path.name for path in stored] == ["test.npz", "train.npz", "validation.npz"]
    written = [path.stat().st_mtime_ns for path in stored]
    after = load_card_text(card, max_length=4)
    assert [path.stat().st_mtime_ns for path in stored] == written
    assert after.hash == before.hash
    assert _inputs(after.train) == _inputs(before.train)
    assert _inputs(after.test()) == _inputs(before.test())


@pytest.mark.parametrize("content", [b"", b"half", None])
def test_a_damaged_cache_is_made_again(make: Make, tmp_path: Path, content: bytes | None) -> None:
    card = make(SINGLE)
    whole = _inputs(load_card_text(card, max_length=8).train)
    path = next((tmp_path / "cache" / "encoded").rglob("train.npz"))
    if content is None:
        changed = bytearray(path.read_bytes())
        changed[len(changed) // 4] ^= 0xFF
        content = bytes(changed[: len(changed) - 10])
    path.write_bytes(content)
    assert _inputs(load_card_text(card, max_length=8).train) == whole


def test_the_cache_is_never_stale(make: Make) -> None:
    first = load_card_text(make(SINGLE), max_length=8)
    second = load_card_text(make([*SINGLE[:4], "a\tblue", "b\tblue"]), max_length=8)
    assert _inputs(first.validation) != _inputs(second.validation)
    assert first.hash != second.hash


def test_the_hash_moves_with_what_matters_only(make: Make) -> None:
    def key(card: Card, max_length: int = 8, train_fraction: float = 1.0) -> str:
        return card_hash(card, max_length=max_length, train_fraction=train_fraction)

    card = make(SINGLE)
    assert card.reader is not None
    assert card.splits is not None
    base = key(card)
    assert load_card_text(card, max_length=8).hash == base
    assert key(make(SINGLE, title="Other", notes=["prose"])) == base
    others = [
        key(card, max_length=9),
        key(card, train_fraction=0.5),
        key(make(SINGLE, classes=["b", "a"])),
        key(make(SINGLE, row_ids=ROW_IDS | {"train": "0-2", "dropped": "3"})),
        key(make(SINGLE, reader=card.reader.model_dump() | {"encodings": ["utf-8", "latin-1"]})),
        key(make(SINGLE, splits=card.splits.model_dump() | {"unique": True})),
    ]
    assert len({base, *others}) == 7
    assert key(make(SINGLE, splits=card.splits.model_dump() | {"unique": False})) == base


def test_a_fraction_takes_whole_classes_and_leaves_validation(make: Make) -> None:
    whole = load_card_text(make(SINGLE), max_length=8)
    part = load_card_text(make(SINGLE), max_length=8, train_fraction=0.5)
    assert len(part.train) == 2
    assert sorted(part.train.labels.tolist()) == [0, 1]
    assert set(part.train.row_ids) < set(whole.train.row_ids)
    assert part.validation.row_ids.tolist() == whole.validation.row_ids.tolist()
    assert "0.5 of the training rows" in part.note


@pytest.mark.parametrize("file", ["tiny-1.zip", "tiny-1.tar.gz"])
def test_source_distributions_are_read(make: Make, file: str) -> None:
    assert len(load_card_text(make(SINGLE, file=file), max_length=8).train) == 4


def test_a_class_absent_from_training_is_told(make: Make) -> None:
    with pytest.raises(DataError, match="'tiny': no training row is of class 'b'"):
        load_card_text(make([line.replace("b\t", "a\t") for line in SINGLE]), max_length=8)


def test_row_ids_beyond_the_rows_are_told(make: Make) -> None:
    with pytest.raises(DataError, match="row 9, but there are only 6"):
        load_card_text(make(SINGLE, row_ids=ROW_IDS | {"test": "9"}), max_length=8)


def test_a_missing_or_altered_package_is_told_even_when_cached(make: Make, tmp_path: Path) -> None:
    card = make(SINGLE)
    load_card_text(card, max_length=8)
    package = tmp_path / "cache" / "packages" / "tiny-1-py3-none-any.whl"
    package.write_bytes(package.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"was altered.*frugalbench fetch tiny"):
        load_card_text(card, max_length=8)
    shutil.rmtree(package.parent)
    with pytest.raises(DataError, match="run `frugalbench fetch tiny`"):
        load_card_text(card, max_length=8)


def test_arguments_out_of_range_are_told(make: Make) -> None:
    with pytest.raises(DataError, match="max_length must be at least 1, not 0"):
        load_card_text(make(SINGLE), max_length=0)
    with pytest.raises(DataError, match="max_length must be at least 3, not 2"):
        load_card_text(make(PAIRS), max_length=2)
    with pytest.raises(DataError, match="train_fraction"):
        load_card_text(make(SINGLE), max_length=8, train_fraction=0)


def test_random_tokens_have_exactly_the_length_asked_for() -> None:
    card = load_card(resource_dir("datasets") / "random-tokens.toml")
    data = load_card_text(card, max_length=7)
    split = data.test()
    assert (split.name, len(split), set(split.lengths)) == ("generated", 64, {7})
    assert split.tokens.min() >= 3
    assert split.tokens.max() < data.vocab_size == 1000
    assert sorted(set(split.labels)) == [0, 1]
    assert (len(data.train), len(data.validation)) == (0, 0)
    assert split.tokens[:4].tolist() == [62, 947, 198, 422]
    assert np.array_equal(split.tokens, load_card_text(card, max_length=7).test().tokens)


def test_take_gives_inputs_in_the_order_asked_for(make: Make) -> None:
    train = load_card_text(make(PAIRS), max_length=16).train
    taken = train.take([1, 0, 1])
    inputs = _inputs(train)
    assert _inputs(taken) == [inputs[1], inputs[0], inputs[1]]
    assert taken.labels.tolist() == [1, 0, 1]
    assert taken.segments is not None
    assert len(taken.segments) == len(taken.tokens)
    assert len(train.take([])) == 0


def test_two_processes_learn_the_same_vocabulary() -> None:
    # many ties in frequency, which is where an unordered map would show
    code = (
        "from benchmarks.data.vocabulary import train_vocabulary\n"
        "words = [f'w{i * 7919 % 9000}' for i in range(9000)]\n"
        "print(train_vocabulary([' '.join(words)] * 2).to_str())\n"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    )
    assert first == second
    assert len(json.loads(first)["model"]["vocab"]) == 8000
