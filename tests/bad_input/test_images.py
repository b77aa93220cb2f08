"""Images that are not what their set says: each is named with its file and row, none slips through."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from benchmarks.data.image_data import ImageData
from benchmarks.data.load import load_data
from benchmarks.data.mirror import VARIABLE
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.running.files import sha256_of

Load = Callable[..., ImageData]


def picture(seed: int, mode: str = "RGB", size: tuple[int, int] = (32, 32)) -> bytes:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(256, size=(size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    content = io.BytesIO()
    (Image.new(mode, size) if mode == "I;16" else image.convert(mode)).save(content, "PNG")
    return content.getvalue()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a mirror of CIFAR-10 with two training images and a test image of each class."""
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    def build(
        changes: dict[int, bytes] | None = None,
        *,
        column: str = "img",
        values: Callable[[bytes], Any] = lambda file: {"bytes": file, "path": None},
        labels: dict[int, int] | None = None,
        cut: int = 0,
        images: str = "",
        counts: tuple[int, int] = (10, 10),
    ) -> ImageData:
        listed = []
        for name, n, first in (("train", 20, 0), ("test", 10, 20)):
            files = {i: picture(first + i) for i in range(n)}
            numbers = {i: i % 10 for i in range(n)}
            if name == "train":
                files |= changes or {}
                numbers |= labels or {}
            path = tmp_path / f"{name}.parquet"
            column_of_images = [values(files[i]) for i in range(n)]
            table = pa.table({column: column_of_images, "label": [numbers[i] for i in range(n)]})
            pq.write_table(table, path)
            if cut and name == "train":
                path.write_bytes(path.read_bytes()[:-cut])
            listed.append(
                f'{name} = [{{ path = "{path.name}", sha256 = "{sha256_of(path)}", rows = {n} }}]'
            )
        (tmp_path / "mirror.toml").write_text(f"""
schema = 1
title = "Copies"
[[set]]
card = "cifar-10"
folder = "."
run_as = "cifar-10 (mirror: 30 images)"
splits = {{ train = "train", validation = 0.5, test = "test" }}
resplit = "validation is half of train"
counts = {{ train = {counts[0]}, validation = {counts[1]}, test = 10, dropped = 0 }}
{images}
[set.files]
{listed[0]}
{listed[1]}
""")
        data = load_data("cifar-10", max_length=32)
        assert isinstance(data, ImageData)
        return data

    return build


def own(**images: str) -> str:
    """The manifest's own table of images."""
    more = "".join(f', {key} = "{value}"' for key, value in images.items())
    head = 'format = "parquet", channels = 3, size = 32, image = "img", label = "label"'
    return f"images = {{ {head}{more} }}"


def test_the_good_set_is_loaded(load: Load) -> None:
    data = load()
    assert (len(data.train), len(data.validation), len(data.test())) == (10, 10, 10)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (picture(0, size=(28, 28)), "an image of 28 x 28 pixels in a set of 32 x 32"),
        (picture(0, size=(32, 24)), "an image of 32 x 24 pixels in a set of 32 x 32"),
        (picture(0, "L"), 'an image of mode L in a set of mode RGB; `images.other_modes = "convert"`'),
        (picture(0, "RGBA"), "an image of mode RGBA in a set of mode RGB"),
        (picture(0, "P"), "an image of mode P in a set of mode RGB"),
        (picture(0, "I;16"), "an image of mode I;16 in a set of mode RGB"),
        (picture(0)[:500], "no image that can be decoded"),
        (b"", r"no image that can be decoded \(it is empty\)"),
        (b"<html>404</html>", r"no image that can be decoded \(cannot identify image file"),
    ],
)  # fmt: skip
def test_an_odd_image_stops_and_is_named(load: Load, file: bytes, said: str) -> None:
    with pytest.raises(DataError, match=rf"train\.parquet, row 3: {said}"):
        load({3: file})


def test_an_image_is_corrupt_whatever_its_decoder_raises(load: Load) -> None:
    content = io.BytesIO()
    Image.new("RGB", (32, 32)).save(content, "DDS")
    file = bytearray(content.getvalue())
    file[80:84] = bytes(4)  # flags of the pixel format: Pillow raises NotImplementedError
    with pytest.raises(DataError, match=r"row 3: no image that can be decoded \(Unknown pixel"):
        load({3: bytes(file)})


def test_a_damaged_image_is_corrupt(load: Load) -> None:
    file = bytearray(picture(0))
    file[200] ^= 255  # a wrong checksum inside
    with pytest.raises(DataError, match=r"row 3: no image that can be decoded"):
        load({3: bytes(file)})


def test_corrupt_images_are_left_out_by_rule_alone(load: Load) -> None:
    with pytest.raises(
        DataError, match=r'`images\.on_corrupt = "skip"` in the card would leave such'
    ):
        load({3: b""})
    data = load({3: b""}, images=own(on_corrupt="skip"), counts=(10, 9))
    # of class 3 one row is left, which stays in training
    assert "1 corrupt images left out" in data.note
    assert (len(data.train), len(data.validation)) == (10, 9)


def test_skipping_corrupt_images_lets_no_other_one_through(load: Load) -> None:
    with pytest.raises(DataError, match="row 3: an image of mode L"):
        load({3: picture(0, "L")}, images=own(on_corrupt="skip"))


def test_modes_that_no_conversion_keeps_are_refused(load: Load) -> None:
    converted = load({3: picture(0, "L")}, images=own(other_modes="convert"))
    assert "1 images converted from another mode" in converted.note
    with pytest.raises(DataError, match=r"row 3: an image of mode I;16 in a set of mode RGB$"):
        load({3: picture(0, "I;16")}, images=own(other_modes="convert"))


def test_a_parquet_file_without_the_images(load: Load) -> None:
    with pytest.raises(
        DataError, match=r"has the columns image, label; .* expects label, img: img is"
    ):
        load(column="image")
    with pytest.raises(DataError, match="column img holds string, 'cifar-10' expects image files"):
        load(values=lambda _: "a path")
    with pytest.raises(DataError, match="column img holds struct<path: string>"):
        load(values=lambda _: {"path": "a"})
    assert len(load(values=lambda file: file).train) == 10  # plain bytes will do


def test_a_parquet_file_that_is_cut_short(load: Load) -> None:
    with pytest.raises(DataError, match=r"train\.parquet is no whole Parquet file"):
        load(cut=100)


def test_labels_out_of_range(load: Load) -> None:
    for label in (-1, 10):
        with pytest.raises(
            DataError, match=rf"row 5: label {label} is out of range; 'cifar-10' has 0 to 9"
        ):
            load(labels={5: label})


def test_a_class_without_training_images(load: Load) -> None:
    with pytest.raises(
        DataError, match="no training row is of class 'cat', so nothing can learn it"
    ):
        load(labels={3: 2, 13: 2})


def test_all_pixels_alike(load: Load) -> None:
    black = {i: _black(i) for i in range(20)}
    with pytest.raises(DataError, match="all training pixels of a channel are alike"):
        load(black)


def _black(i: int) -> bytes:
    content = io.BytesIO()
    # the last ten, which are for validation, differ, so that they are no duplicates
    Image.new("RGB", (32, 32), (0, 0, 0) if i < 10 else (i, i, i)).save(content, "PNG")
    return content.getvalue()


def test_sizes_and_fractions_out_of_range(load: Load) -> None:
    load()
    with pytest.raises(DataError, match=r"max_length .* must be at least 1"):
        load_data("cifar-10", max_length=0)
    with pytest.raises(DataError, match=r"train_fraction must lie in \(0, 1\]"):
        load_data("cifar-10", max_length=32, train_fraction=0)


def test_a_manifest_whose_table_is_wrong(load: Load) -> None:
    with pytest.raises(
        InvalidFileError, match=r"images\.format: from this kind of source images come as"
    ):
        load(images='images = { format = "csv", channels = 1, size = 32, label = 0 }')
    with pytest.raises(InvalidFileError, match="on_corrupt"):
        load(images=own(on_corrupt="ignore"))
    with pytest.raises(
        InvalidFileError, match=r"set\.0\.images: Input should be a valid dictionary$"
    ):
        load(images='images = "parquet"')
