"""The real image sets, where they are here: counts, splits, pixels, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import data_path, is_available, package_path
from benchmarks.data.image_data import ImageData
from benchmarks.data.image_rows import read_image_rows
from benchmarks.data.load import load_data
from benchmarks.data.mirror import VARIABLE, mirror_root, read_manifest
from benchmarks.data.splits import compute_splits, read_splits
from benchmarks.errors import DataError
from benchmarks.paths import CHECKOUT
from benchmarks.yardstick import pixel_accuracy

ROOT = "FRUGALBENCH_DATA_ROOT"
MIRROR = CHECKOUT / "tests" / "mirror" / "mirror.toml"
DEBIAN = CHECKOUT / "datasets" / "mirrors" / "debian.toml"

# rows of each class in train, validation and test
PER_CLASS = {
    "digits": (
        [128, 131, 128, 131, 130, 131, 130, 129, 125, 130],
        [14, 15, 14, 15, 15, 15, 15, 14, 14, 14],
        [36, 36, 35, 37, 36, 36, 36, 36, 35, 36],
    ),
    "mnist-5k": ([360] * 10, [40] * 10, [100] * 10),
}


def load(name: str, side: int, train_fraction: float = 1.0) -> ImageData:
    data = load_data(name, max_length=side, train_fraction=train_fraction)
    assert isinstance(data, ImageData)
    return data


def per_class(data: ImageData) -> tuple[list[int], ...]:
    splits = (data.train, data.validation, data.test())
    return tuple(np.bincount(s.labels, minlength=len(data.classes)).tolist() for s in splits)


@pytest.fixture(params=sorted(PER_CLASS))
def card(request: pytest.FixtureRequest) -> Card:
    card = find_card(request.param)
    if not is_available(card):
        pytest.skip(f"{card.name} is not fetched: `frugalbench fetch {card.name}`")
    return card


@pytest.mark.data
def test_committed_row_ids_are_what_the_rule_gives(card: Card) -> None:
    rows = read_image_rows(card, package_path(card))
    assert read_splits(card) == compute_splits(card, rows)


@pytest.mark.data
def test_packaged_sets(card: Card) -> None:
    side = card.max_length or 0
    data = load(card.name, side)
    assert per_class(data) == PER_CLASS[card.name]
    assert data.channels == 1
    assert data.note.endswith("stand-in for CIFAR-10")


@pytest.mark.data
def test_digits_are_scikit_learns(card: Card) -> None:
    from sklearn.datasets import load_digits

    if card.name != "digits":
        pytest.skip("of digits alone")
    known = load_digits()
    test = load("digits", 8).test()
    assert (test.labels == known.target[test.row_ids]).all()
    levels = np.rint(test.pixels[:, 0] * (16 / 255))
    assert (levels == known.images[test.row_ids]).all()


@pytest.mark.data
@pytest.mark.slow
def test_yardsticks_are_what_the_cards_say(card: Card) -> None:
    for quoted, method in zip(card.yardsticks, ("logistic regression", "SVM"), strict=True):
        assert quoted.name.startswith(method.replace("SVM", "support vector machine"))
        assert pixel_accuracy(card, method, 1.0)[0] == pytest.approx(quoted.value, abs=0.005)


@pytest.mark.data
@pytest.mark.slow
def test_cifar_10_as_jpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = os.environ.get(ROOT) or CHECKOUT.parent / "shared" / "data"
    if not (Path(chosen) / "cifar10").is_dir():
        pytest.skip(f"the mirror of real rows is not here: set {ROOT} to its folder")
    monkeypatch.setenv(ROOT, str(chosen))
    monkeypatch.setenv(VARIABLE, str(MIRROR))
    data = load("cifar-10", 32, 0.1)
    assert per_class(data) == ([450] * 10, [500] * 10, [1000] * 10)
    assert data.card.run_name == "cifar-10 (mirror: lossy JPEG)"
    assert data.partial
    assert "lossy JPEG" in data.note
    # the means that are published for the original's training split, which JPEG hardly moves
    assert data.train.mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.003)
    assert data.train.std.tolist() == pytest.approx([0.247, 0.2435, 0.2616], abs=0.005)


@pytest.mark.data
@pytest.mark.slow
def test_fashion_mnist_as_debian_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(DEBIAN))
    try:
        mirror_root(read_manifest(DEBIAN), DEBIAN)
        data_path(find_card("fashion-mnist"))
    except DataError as error:
        pytest.skip(f"apt install dataset-fashion-mnist brings it ({error})")
    data = load("fashion-mnist", 28)
    assert per_class(data) == ([5400] * 10, [600] * 10, [1000] * 10)
    assert data.card.run_name == "fashion-mnist (mirror: Debian's idx files)"
    assert data.train.mean.tolist() == pytest.approx([0.2860], abs=0.001)


def test_committed_mirrors_are_valid() -> None:
    (entry,) = [e for e in read_manifest(MIRROR).sets if e.card == "cifar-10"]
    assert entry.lossy
    assert entry.run_as == "cifar-10 (mirror: lossy JPEG)"
    (entry,) = read_manifest(DEBIAN).sets
    assert entry.run_as == "fashion-mnist (mirror: Debian's idx files)"
    assert not entry.lossy
