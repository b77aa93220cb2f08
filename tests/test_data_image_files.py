"""Forms in which images come: tables of grey values, idx files, folders of classes, a mirror of these."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from made_up import TINY_CARD
from PIL import Image

from benchmarks.cli import app
from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import data_path, state
from benchmarks.data.image_data import load_card_images
from benchmarks.data.image_files import listing
from benchmarks.data.image_reader import ImageReader
from benchmarks.data.image_rows import read_image_rows
from benchmarks.data.load import load_data
from benchmarks.data.mirror import VARIABLE
from benchmarks.errors import DataError
from benchmarks.running.files import sha256_of

Array = npt.NDArray[np.uint8]
LINES = ["0,16,8,4,1", "16,0,4,8,0", "1,2,3,4,1", "4,3,2,1,0"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "")


def packaged(tmp_path: Path, lines: list[str], rows: int = 4, **images: Any) -> Card:
    """A card whose package holds a table of 2 x 2 pixels and a label each."""
    package = tmp_path / "cache" / "packages" / "tiny-1-py3-none-any.whl"
    package.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("all.csv.gz", gzip.compress("\n".join(lines).encode()))
    (tmp_path / "splits").mkdir(exist_ok=True)
    ids = {"train": "0-1", "validation": "2", "test": "3", "dropped": ""}
    (tmp_path / "splits" / "tiny.json").write_text(json.dumps(ids))
    values = {
        **TINY_CARD,
        "task": "image",
        "source": {
            "kind": "package",
            "package": "tiny",
            "version": "1",
            "file": package.name,
            "sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
            "parts": [{"name": "all", "path": "all.csv.gz", "rows": rows}],
        },
        "images": {"format": "csv", "channels": 1, "size": 2, "label": 4, "white": 16} | images,
        "splits": {"train": "all", "validation": 0.25, "test": 0.25},
        "counts": {"train": 2, "validation": 1, "test": 1, "dropped": 0},
    }
    return Card.model_validate(values, context={"folder": tmp_path})


def test_a_table_of_grey_values(tmp_path: Path) -> None:
    data = load_card_images(packaged(tmp_path, LINES), image_size=2)
    assert data.train.pixels[0].tolist() == [[[0, 255], [128, 64]]]
    assert data.train.labels.tolist() == [1, 0]
    assert data.test().pixels[0].tolist() == [[[64, 48], [32, 16]]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0,17,8,4,1", "a pixel is no whole number from 0 to 16"),
        ("0,1.5,8,4,1", "a pixel is no whole number from 0 to 16"),
        ("0,1,8,4,2", r"all\.csv\.gz, line 2: label 2\.0 is out of range; 'tiny' has 0 to 1"),
        ("0,1,8,4,x", "all.csv.gz: could not convert"),
        ("0,1,8,4", "all.csv.gz: .*columns changed"),
    ],
)
def test_a_wrong_table_is_told_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    card = packaged(tmp_path, [LINES[0], line, *LINES[2:]])
    with pytest.raises(DataError, match=said):
        read_image_rows(card, data_path(card))


def test_a_table_of_another_size_or_number(tmp_path: Path) -> None:
    card = packaged(tmp_path, LINES, size=3, label=9)
    with pytest.raises(DataError, match="5 columns, 'tiny' expects a label and 3 x 3 pixels"):
        read_image_rows(card, data_path(card))
    card = packaged(tmp_path, LINES, rows=5)
    with pytest.raises(DataError, match=r"all\.csv\.gz has 4 images, 'tiny' must have 5"):
        read_image_rows(card, data_path(card))


def idx(values: Array) -> bytes:
    """The values as an idx file."""
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    return head + values.tobytes()


def idx_mirror(folder: Path, changes: dict[str, bytes] | None = None) -> Path:
    """A mirror of Fashion-MNIST with two training images and one test image of each class."""
    rng = np.random.default_rng(0)
    files = {}
    for part, n in (("train", 20), ("t10k", 10)):
        pixels = rng.integers(256, size=(n, 28, 28), dtype=np.uint8)
        labels = (np.arange(n) % 10).astype(np.uint8)
        files[f"{part}-images.gz"] = gzip.compress(idx(pixels))
        files[f"{part}-labels"] = idx(labels)
    (folder / "fashion").mkdir(parents=True, exist_ok=True)
    for name, content in (files | (changes or {})).items():
        (folder / "fashion" / name).write_bytes(content)

    def entry(name: str, rows: int) -> str:
        sha256 = sha256_of(folder / "fashion" / name)
        return f'{{ path = "{name}", sha256 = "{sha256}", rows = {rows} }}'

    (folder / "mirror.toml").write_text(f"""
schema = 1
title = "Copies"
[[set]]
card = "fashion-mnist"
folder = "fashion"
run_as = "fashion-mnist (mirror: 30 images)"
partial = {{ train = "20 of 60,000" }}
images = {{ format = "idx", channels = 1, size = 28 }}
splits = {{ train = "train", validation = 0.5, test = "test" }}
resplit = "validation is half of train"
counts = {{ train = 10, validation = 10, test = 10, dropped = 0 }}
[set.files]
train = [{entry("train-images.gz", 20)}, {entry("train-labels", 20)}]
test = [{entry("t10k-images.gz", 10)}, {entry("t10k-labels", 10)}]
""")
    return folder


def test_a_mirror_of_idx_files_never_has_the_plain_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(idx_mirror(tmp_path / "copies")))
    data = load_data("fashion-mnist", max_length=28)
    assert data.card.run_name == "fashion-mnist (mirror: 30 images)"
    assert data.partial
    assert data.note.startswith("a local mirror; train: 20 of 60,000; validation is half of train")
    assert state(find_card("fashion-mnist")) == "mirrored"
    assert data.test().labels.tolist() == list(range(10))
    assert app.run(["list", "datasets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["fashion-mnist"]["rows"] == "10 / 10 / 10"
    assert rows["fashion-mnist"]["role"].endswith("runs as fashion-mnist (mirror: 30 images)")
    assert rows["cifar-10"]["state"] == "unverified"
    assert app.run(["fetch", "fashion-mnist"]) == 0
    assert "here and intact, runs as" in capsys.readouterr().out


PIXELS = np.zeros((20, 28, 28), np.uint8)
IDX_WRONG = [
    ({"train-images.gz": gzip.compress(idx(PIXELS))[:-20]}, r"train-images\.gz is damaged, or cut short"),
    ({"train-images.gz": gzip.compress(idx(PIXELS)[:-1])}, r"cut short or too long: 15,695 bytes"),
    ({"train-images.gz": gzip.compress(idx(PIXELS[:19]))}, r"train-images\.gz has 19 rows"),
    ({"train-labels": idx(PIXELS)}, r"train-labels is no idx file of bytes in 1 dimensions"),
    ({"train-labels": b"\0\0"}, r"begins with 00 00, not 00 00 08 01"),
    ({"train-labels": b""}, r"begins with nothing, not 00 00 08 01"),
    ({"train-images.gz": gzip.compress(bytes([0, 0, 8, 3]) + 3 * b"\x80\0\0\0")}, r"cut short"),
    ({"train-labels": idx(np.full(20, 10, np.uint8))}, r"train-labels, row 0: label 10 is out of"),
    ({"train-images.gz": gzip.compress(idx(PIXELS[:, 1:]))}, r"images of 28 x 27 pixels"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), IDX_WRONG)
def test_a_wrong_idx_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, bytes], said: str
) -> None:
    monkeypatch.setenv(VARIABLE, str(idx_mirror(tmp_path / "copies", changes)))
    with pytest.raises(DataError, match=said):
        load_data("fashion-mnist", max_length=28)


def photograph(path: Path, width: int, height: int, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(values).save(path)


def folders(tmp_path: Path) -> Card:
    """Class folders with three training images and one test image each, of various sizes."""
    for label, name in enumerate("ab"):
        for i in range(3):
            photograph(tmp_path / "train" / name / f"{i}.PNG", 9 + i, 10, 10 * label + i)
        photograph(tmp_path / "val" / name / "0.jpg", 12, 9, 100 + label)
    return folder_card(tmp_path)


def folder_card(tmp_path: Path) -> Card:
    parts = []
    for name, folder in (("train", "train"), ("test", "val")):
        sha256, rows = listing(tmp_path / folder)
        parts.append({"name": name, "files": [{"path": folder, "sha256": sha256, "rows": rows}]})
    values = {
        "schema": 1, "name": "tiny", "title": "Tiny", "task": "image", "classes": ["a", "b"],
        "licence": {"package": "none", "data": "MIT"},
        "source": {
            "kind": "parquet", "origin": "mirror", "repo": "some/tiny", "run_as": "tiny (mirror)",
            "folder": tmp_path, "parts": parts,
        },
        "images": {"format": "folders", "channels": 3},
        "splits": {"train": "train", "validation": 0.34, "test": "test"},
        "counts": {"train": 4, "validation": 2, "test": 2, "dropped": 0},
    }  # fmt: skip
    return Card.model_validate(values, context={"folder": tmp_path})


def test_folders_of_classes(tmp_path: Path) -> None:
    card = folders(tmp_path)
    (tmp_path / "train" / "a" / "notes.txt").write_text("no image")
    data = load_card_images(card, image_size=8)
    assert data.train.labels.tolist() == [0, 0, 1, 1]
    assert data.train.row_ids.tolist() == [0, 1, 3, 4]
    assert data.test().pixels.shape == (2, 3, 8, 8)


def test_a_folder_is_known_by_its_list(tmp_path: Path) -> None:
    card = folders(tmp_path)
    photograph(tmp_path / "train" / "a" / "3.png", 9, 9, 50)
    with pytest.raises(DataError, match="holds 7 images, the manifest says 6; the sha256 of its"):
        data_path(card)
    (tmp_path / "train" / "a" / "3.png").unlink()
    photograph(tmp_path / "train" / "a" / "0.PNG", 20, 20, 50)
    with pytest.raises(DataError, match="train was altered"):
        data_path(card)


def test_names_in_a_folder_that_cannot_be_listed_are_told(tmp_path: Path) -> None:
    folders(tmp_path)
    odd = tmp_path / "train" / "a" / "z.png"
    odd.symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"train/a/z\.png: No such file"):
        listing(tmp_path / "train")
    odd.unlink()
    try:
        (tmp_path / "train" / "a" / os.fsdecode(b"z\xff.png")).touch()
    except OSError:
        return  # this file system takes no such names
    with pytest.raises(DataError, match=r"a/z\\udcff\.png': its name is no UTF-8 text; rename it"):
        listing(tmp_path / "train")


def test_missing_and_extra_folders_are_named(tmp_path: Path) -> None:
    folders(tmp_path)
    (tmp_path / "train" / "b").rename(tmp_path / "train" / "beta")
    card = folder_card(tmp_path)
    with pytest.raises(
        DataError, match=r"one folder a class of 'tiny' \(2 of them\); missing: b; extra: beta"
    ):
        load_card_images(card, image_size=8)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "parquet", "label": "label"}, "image: format 'parquet' needs a column's name"),
        ({"format": "csv", "label": "label"}, "label: format 'csv' needs a column's number"),
        ({"format": "idx", "label": 1}, "label: format 'idx' has no such column"),
        ({"format": "idx", "channels": 3}, "channels: format 'idx' holds grey images"),
        ({"format": "idx", "size": None}, "size: format 'idx' needs the native side"),
        ({"format": "folders", "white": 16}, "white: only csv"),
        ({"format": "folders", "channels": 2}, "channels"),
        ({"format": "folders", "on_corrupt": "ignore"}, "on_corrupt"),
    ],
)
def test_a_wrong_reader_is_told_its_key(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ImageReader.model_validate({"channels": 1, "size": 8} | changes)


def test_a_file_is_no_image_by_its_name_alone(tmp_path: Path) -> None:
    card = folders(tmp_path)
    content = io.BytesIO()
    Image.new("RGB", (9, 10)).save(content, "PNG")
    size = (tmp_path / "train/a/0.PNG").stat().st_size
    (tmp_path / "train/a/0.PNG").write_bytes(b"x" * size)
    # the list of a folder holds sizes and names only, so this is found on reading
    with pytest.raises(DataError, match=r"train/a/0\.PNG: no image that can be decoded"):
        load_card_images(card, image_size=8)
