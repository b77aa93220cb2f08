"""The whole way from image files to batches, with tiny sets made here."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from made_up import TINY_CARD
from PIL import Image

from benchmarks.catalog import DATASETS
from benchmarks.data.batches import ImageBatch, collate, train_batches
from benchmarks.data.card import Card
from benchmarks.data.identity import card_hash, data_hash
from benchmarks.data.image_data import ImageData, load_card_images
from benchmarks.data.load import TextData, load_card_text, load_data
from benchmarks.data.locks import rests_on
from benchmarks.errors import DataError
from benchmarks.meters.inputs import data_used
from benchmarks.reporting.pictures import pictures
from benchmarks.running.files import sha256_of

Array = npt.NDArray[np.uint8]
Make = Callable[..., Card]
IMAGES = {"format": "parquet", "channels": 3, "size": 8, "image": "img", "label": "label"}


def colours(n: int, side: int = 8, seed: int = 0) -> list[Array]:
    """n different images, (side, side, 3)."""
    rng = np.random.default_rng(seed)
    return [rng.integers(256, size=(side, side, 3), dtype=np.uint8) for _ in range(n)]


def encoded(pixels: Array, kind: str = "PNG") -> bytes:
    """An image file."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, kind)
    return content.getvalue()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes Parquet files of images and the card that a mirror would make of them."""
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))

    def build(
        train: Sequence[bytes],
        test: Sequence[bytes],
        counts: tuple[int, int, int, int],
        images: dict[str, Any] | None = None,
        labels: Sequence[int] | None = None,
        **changes: Any,
    ) -> Card:
        parts = []
        for name, files in (("train", train), ("test", test)):
            numbers = labels if labels and name == "train" else [i % 2 for i in range(len(files))]
            column = [{"bytes": file, "path": None} for file in files]
            path = tmp_path / f"{name}.parquet"
            pq.write_table(pa.table({"img": column, "label": numbers}), path)
            file = {"path": path.name, "sha256": sha256_of(path), "rows": len(files)}
            parts.append({"name": name, "files": [file]})
        names = ("train", "validation", "test", "dropped")
        values: dict[str, Any] = {
            **TINY_CARD,
            "task": "image",
            "licence": {"package": "none", "data": "MIT"},
            "source": {
                "kind": "parquet", "origin": "mirror", "repo": "some/tiny",
                "run_as": "tiny (mirror)", "folder": tmp_path, "parts": parts,
            },
            "images": IMAGES | (images or {}),
            "splits": {"train": "train", "validation": 0.2, "test": "test"},
            "counts": dict(zip(names, counts, strict=True)),
        }  # fmt: skip
        return Card.model_validate(values | changes, context={"folder": tmp_path})

    return build


@pytest.fixture
def ten(make: Make) -> Card:
    """Ten training images and four test images."""
    files = [encoded(pixels) for pixels in colours(14)]
    return make(files[:10], files[10:], (8, 2, 4, 0))


def test_pixels_are_those_of_the_files(ten: Card) -> None:
    data = load_card_images(ten, image_size=8)
    made = np.stack(colours(14)).transpose(0, 3, 1, 2)
    assert (data.channels, data.image_size, data.max_length) == (3, 8, 8)
    # the last fifth of each label's rows
    assert data.validation.row_ids.tolist() == [8, 9]
    assert data.train.labels.tolist() == [0, 1] * 4
    for split in (data.train, data.validation, data.test()):
        assert split.pixels.dtype == np.uint8
        assert (split.pixels == made[split.row_ids]).all()
        assert split.lengths.tolist() == [8] * len(split)
    assert data.test().row_ids.tolist() == [10, 11, 12, 13]


def test_batches_are_normalised_by_the_training_split(ten: Card) -> None:
    data = load_card_images(ten, image_size=8)
    train = data.train.pixels / 255
    np.testing.assert_allclose(data.train.mean, train.mean(axis=(0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(data.train.std, train.std(axis=(0, 2, 3)), rtol=1e-5)
    assert (data.test().mean == data.train.mean).all()
    batch = collate(data.train, range(8))
    assert isinstance(batch, ImageBatch)
    assert batch.pixel_values.dtype == torch.float32
    assert batch.pixel_values.mean(dim=(0, 2, 3)).tolist() == pytest.approx([0] * 3, abs=1e-5)
    assert batch.pixel_values.std(dim=(0, 2, 3), correction=0).tolist() == pytest.approx([1] * 3)
    back = batch.pixel_values * torch.from_numpy(data.train.std)[:, None, None]
    back = (back + torch.from_numpy(data.train.mean)[:, None, None]) * 255
    assert (back.round().numpy() == data.train.pixels).all()
    seen = list(train_batches(data.train, 3, torch.Generator().manual_seed(0)))
    assert sorted(i for b in seen for i in b.row_ids.tolist()) == data.train.row_ids.tolist()


def test_training_rows_that_are_in_another_split_are_dropped_and_counted(make: Make) -> None:
    made = colours(14)
    # the third and fourth training images are test images, one of them in another file format
    files = [encoded(pixels) for pixels in made]
    train = [*files[:2], files[12], encoded(made[13], "BMP"), *files[4:10]]
    with pytest.raises(DataError, match=r"counts are .*'dropped': 0"):
        load_card_images(make(train, files[10:], (8, 2, 4, 0)), image_size=8)
    data = load_card_images(make(train, files[10:], (6, 2, 4, 2)), image_size=8)
    assert 2 not in data.train.row_ids
    assert 3 not in data.train.row_ids


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "index gone"])
def test_a_damaged_cache_is_built_again(ten: Card, tmp_path: Path, damage: str) -> None:
    known = load_card_images(ten, image_size=8).test()
    pixels = known.pixels.copy()
    (file,) = tmp_path.glob("cache/images/*/test.pixels")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[:-5])
    elif damage == "flipped":
        file.write_bytes(content)
    elif damage == "index gone":
        file.with_suffix(".npz").unlink()
    data = load_card_images(ten, image_size=8)
    assert (data.test().pixels == pixels).all()
    assert not list(tmp_path.glob("cache/images/*/.*.part"))


def test_a_damaged_table_of_rows_is_read_again(ten: Card, tmp_path: Path) -> None:
    known = load_card_images(ten, image_size=8)
    (rows,) = tmp_path.glob("cache/images/rows-*.npz")
    rows.write_bytes(rows.read_bytes()[:100])
    again = load_card_images(ten, image_size=8, train_fraction=0.5)
    assert set(again.train.row_ids) < set(known.train.row_ids)


def test_nothing_of_the_test_split_is_opened_before_it_is_asked_for(
    ten: Card, tmp_path: Path
) -> None:
    load_card_images(ten, image_size=8)
    for file in tmp_path.glob("cache/images/*/test.*"):
        file.unlink()
    data = load_card_images(ten, image_size=8)
    assert not list(tmp_path.glob("cache/images/*/test.*"))
    assert len(data.test()) == 4


def test_another_size_is_resized_and_said(ten: Card) -> None:
    native, larger = (load_card_images(ten, image_size=side) for side in (8, 12))
    one = Image.fromarray(colours(1)[0]).resize((12, 12), Image.Resampling.BICUBIC)
    assert (larger.train.pixels[0] == np.asarray(one).transpose(2, 0, 1)).all()
    assert "resized from 8 x 8 to 12 x 12 pixels (bicubic)" in larger.note
    assert "resized" not in native.note
    assert larger.hash != native.hash
    assert (larger.train.row_ids == native.train.row_ids).all()


def test_images_of_all_sizes_are_cut_to_their_centre(make: Make) -> None:
    wide = np.zeros((6, 20, 3), np.uint8)
    wide[:, 7:13] = 255  # its centre square is white
    files = [encoded(wide), *(encoded(pixels) for pixels in colours(9, side=11))]
    card = make(files[:8], files[8:], (6, 2, 2, 0), images={"size": None})
    data = load_card_images(card, image_size=6)
    assert data.train.pixels.shape == (6, 3, 6, 6)
    assert (data.train.pixels[0] == 255).all()
    assert "centre squares resized to 6 x 6 pixels (bicubic)" in data.note


def test_training_subsets_are_nested_and_balanced(make: Make) -> None:
    files = [encoded(pixels) for pixels in colours(54)]
    card = make(files[:50], files[50:], (40, 10, 4, 0))
    parts = [load_card_images(card, image_size=8, train_fraction=f) for f in (0.1, 0.5, 1.0)]
    ids = [set(data.train.row_ids.tolist()) for data in parts]
    assert ids[0] < ids[1] < ids[2]
    assert [len(found) for found in ids] == [4, 20, 40]
    assert sorted(parts[0].train.labels) == [0, 0, 1, 1]
    assert all(len(data.validation) == 10 for data in parts)
    assert "0.1 of the training rows" in parts[0].note
    assert len({data.hash for data in parts}) == 3
    # each is normalised by its own training rows
    assert parts[0].train.mean.tolist() != parts[1].train.mean.tolist()


def test_what_was_converted_and_left_out_is_counted(make: Make) -> None:
    made = colours(12)
    files = [encoded(pixels) for pixels in made]
    files[1] = encoded(np.asarray(Image.fromarray(made[1]).convert("L")))
    files[3] = files[3][:60]
    card = make(
        files[:10],
        files[10:],
        (7, 2, 2, 0),
        images={"other_modes": "convert", "on_corrupt": "skip"},
    )
    data = load_card_images(card, image_size=8)
    assert "1 corrupt images left out; 1 images converted from another mode" in data.note
    assert "1 corrupt images left out" in data_used(data).note
    # row ids count the images that are there: the fifth file is row 3
    assert (data.train.pixels[3] == made[4].transpose(2, 0, 1)).all()
    grey = data.train.pixels[1]
    assert (grey[0] == grey[1]).all()
    assert (grey[0] == grey[2]).all()


def test_the_hash_moves_with_what_matters_only(ten: Card) -> None:
    def found(card: Card, side: int = 8, fraction: float = 1.0) -> str:
        return card_hash(card, max_length=side, train_fraction=fraction)

    base = found(ten)
    assert load_card_images(ten, image_size=8).hash == base
    other = ten.model_copy(update={"title": "Another", "notes": ("A note.",)})
    assert found(other) == base
    assert ten.images is not None
    skipping = ten.images.model_copy(update={"on_corrupt": "skip"})
    changed = {base, found(ten, side=9), found(ten, fraction=0.5)}
    changed.add(found(ten.model_copy(update={"images": skipping})))
    assert len(changed) == 4


def test_hashes_of_older_cards_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRUGALBENCH_DATA", raising=False)
    # as they were before there were image sets
    known = {
        "r8": "1c0e359dd2fa9a1b",
        "ag-news": "b0f5edd357b0e79c",
        "random-tokens": "0701125c7b8454a0",
    }
    for name, expected in known.items():
        assert data_hash(name, max_length=64, train_fraction=0.5) == expected
    assert rests_on(DATASETS.get("ag-news")) == "dfd6ecae4d38ea1b"


def test_random_images_have_any_size_and_are_the_same_everywhere() -> None:
    data = load_data("random-images", max_length=20)
    assert isinstance(data, ImageData)
    assert (len(data.train), len(data.validation), data.channels) == (0, 0, 3)
    test = data.test()
    assert test.pixels.shape == (32, 3, 20, 20)
    assert test.pixels[0, 0, 0, :6].tolist() == [214, 41, 61, 116, 153, 129]
    assert data.hash == data_hash("random-images", max_length=20)
    assert data_used(data).split == "generated"
    batch = collate(test, range(32))
    assert isinstance(batch, ImageBatch)
    assert batch.pixel_values.mean().item() == pytest.approx(0, abs=0.02)
    assert batch.pixel_values.std().item() == pytest.approx(1, abs=0.02)


def test_load_data_tells_texts_from_images(ten: Card) -> None:
    data = load_data("random-tokens", max_length=4)
    assert isinstance(data, TextData)
    with pytest.raises(DataError, match="holds images, not texts"):
        load_card_text(ten, max_length=8)


def shown(card: Card, rows: Sequence[int], *, allowed: bool = True) -> dict[int, Array]:
    point = SimpleNamespace(max_length=4, train_fraction=1.0)
    variant: Any = SimpleNamespace(dataset=card.name, points=[SimpleNamespace(point=point)])
    view: Any = SimpleNamespace(card=lambda _: card, may_show=lambda _: allowed)
    return pictures(view, variant, rows)


def test_a_report_gets_the_pictures_that_the_model_sees(ten: Card) -> None:
    seen = load_card_images(ten, image_size=4).validation
    rows = [int(row) for row in seen.row_ids]
    found = shown(ten, rows)
    assert sorted(found) == rows
    for row, pixels in zip(rows, seen.pixels, strict=True):
        assert np.array_equal(found[row], pixels.transpose(1, 2, 0))
    assert shown(ten, rows, allowed=False) == {}


def test_a_report_has_no_pictures_of_data_that_are_not_here(
    ten: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(card: Card) -> Path:
        raise DataError(f"{card.name} is not here")

    monkeypatch.setattr("benchmarks.data.fetch.data_path", refuse)
    assert shown(ten, [0]) == {}


def test_a_report_makes_no_large_set_ready_for_a_picture(
    ten: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.reporting.pictures.MOST", 1)
    rows = list(range(14))
    assert shown(ten, rows) == {}
    load_card_images(ten, image_size=4)
    assert len(shown(ten, rows)) > 0
