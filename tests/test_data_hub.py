"""Hub sets: the first download and its lock, later ones, and what goes wrong. The hub is made up."""

from __future__ import annotations

import hashlib
import io
import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from made_up import TINY_CARD
from PIL import Image

from benchmarks.catalog import DATASETS
from benchmarks.cli import app
from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import data_path, fetch, state
from benchmarks.data.identity import card_hash
from benchmarks.data.image_data import load_card_images
from benchmarks.data.load import load_card_text, load_data
from benchmarks.data.locks import locked
from benchmarks.errors import DataError, InvalidFileError

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Stands in for the hub: one repository, whose files lie in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.revision = REVISION
        self.error: Exception | None = None
        self.downloads: list[tuple[str, str]] = []

    def put(self, name: str, labels: list[int], **texts: list[Any]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"label": labels, **texts}), path)

    def dataset_info(self, repo: str) -> Any:
        assert repo == "some/tiny"
        if self.error:
            raise self.error
        names = sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*.parquet"))
        siblings = [types.SimpleNamespace(rfilename=name) for name in ["README.md", *names]]
        return types.SimpleNamespace(sha=self.revision, siblings=siblings)

    def download(
        self, repo: str, name: str, *, repo_type: str, revision: str, local_dir: Path
    ) -> str:
        if self.error:
            raise self.error
        assert (repo, repo_type) == ("some/tiny", "dataset")
        self.downloads.append((name, revision))
        target = local_dir / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((self.folder / name).read_bytes())
        return str(target)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FRUGALBENCH_DATA", raising=False)
    made = Hub(tmp_path / "hub")
    made.put("data/train-00000-of-00002.parquet", [0, 1] * 5, text=["red red", "blue blue"] * 5)
    made.put("data/train-00001-of-00002.parquet", [-1, 0, 1], text=["grey", "red one", "blue one"])
    made.put("data/test-00000-of-00001.parquet", [0, 1], text=["red red", "blue two"])
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: made)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.download)
    return made


def _card(folder: Path, **changes: Any) -> Card:
    values: dict[str, Any] = {
        **TINY_CARD,
        "licence": {"package": "none", "data": "MIT"},
        "source": {
            "kind": "hub",
            "repo": "some/tiny",
            "parts": [
                {"name": "train", "files": "data/train-*.parquet"},
                {"name": "test", "files": "data/test-*.parquet"},
            ],
        },
        "reader": {"format": "parquet", "label": "label", "text": ["text"], "drop_label": -1},
        "splits": {"train": "train", "validation": 0.2, "test": "test"},
    }
    return Card.model_validate(values | changes, context={"folder": folder})


@pytest.fixture
def card(tmp_path: Path) -> Card:
    (tmp_path / "cards").mkdir()
    return _card(tmp_path / "cards")


def _locked(card: Card) -> Card:
    found = locked(card)
    assert found is not None
    return found


def _hash(card: Card) -> str:
    return card_hash(card, max_length=8, train_fraction=1.0)


def test_an_image_set_is_locked_too(hub: Hub, tmp_path: Path) -> None:
    files = [io.BytesIO() for _ in range(8)]
    for grey, file in enumerate(files):
        Image.new("L", (2, 2), 20 * grey).save(file, "PNG")
    (tmp_path / "cards").mkdir()
    images = [{"bytes": file.getvalue(), "path": None} for file in files]
    hub.put("data/train-00000-of-00002.parquet", [0, 1] * 2, image=images[:4])
    hub.put("data/train-00001-of-00002.parquet", [0, 1] * 2, image=[*images[4:6], *images[:2]])
    hub.put("data/test-00000-of-00001.parquet", [0, 1, 0], image=[*images[6:], images[0]])
    reader = {"format": "parquet", "channels": 1, "size": 2, "image": "image", "label": "label"}
    card = _card(tmp_path / "cards", task="image", reader=None, images=reader)
    fetch(card)
    found = _locked(card)
    assert found.counts is not None
    # rows 0 and 6 are a test image; row 7 is the fifth of label 1's rest, and row 1 its equal
    assert found.counts.model_dump() == {"train": 4, "validation": 1, "test": 3, "dropped": 3}
    data = load_card_images(found, image_size=2)
    assert data.train.row_ids.tolist() == [2, 3, 4, 5]
    assert data.hash == _hash_at(found, 2) != _hash_at(card, 2)
    assert not data.partial


def _hash_at(card: Card, side: int) -> str:
    return card_hash(card, max_length=side, train_fraction=1.0)


def test_the_first_download_locks_what_it_brought(hub: Hub, card: Card, tmp_path: Path) -> None:
    assert state(card) == "unverified"
    assert locked(card) is None
    folder = fetch(card)
    lock = json.loads((tmp_path / "cards" / "locks" / "tiny.json").read_text())
    assert (lock["repo"], lock["revision"]) == ("some/tiny", REVISION)
    files = [file for part in lock["parts"] for file in part["files"]]
    assert [(file["path"], file["rows"]) for file in files] == [
        ("data/train-00000-of-00002.parquet", 10),
        ("data/train-00001-of-00002.parquet", 3),
        ("data/test-00000-of-00001.parquet", 2),
    ]
    for file in files:
        content = (hub.folder / file["path"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert (folder / file["path"]).read_bytes() == content
    # five training rows are in the test split too; of each label's rest the last fifth
    assert lock["counts"] == {"train": 6, "validation": 1, "test": 2, "dropped": 5}
    assert lock["unlabelled"] == 1
    assert {revision for _, revision in hub.downloads} == {REVISION}


def test_a_locked_set_loads_and_says_what_it_is(hub: Hub, card: Card) -> None:
    before = _hash(card)
    fetch(card)
    found = _locked(card)
    assert state(found) == "available"
    assert (found.n_rows("train"), found.run_name) == (6, "tiny")
    assert found.source_text == "some/tiny at 0123456789ab (hub)"
    assert found.notes == ("Rows without a label, left out: 1.",)
    data = load_card_text(found, max_length=8)
    assert (len(data.train), len(data.validation), len(data.test())) == (6, 1, 2)
    assert (data.partial, data.note) == (False, "")
    assert data.hash == _hash(found) != before


def test_another_machine_brings_exactly_what_is_locked(
    hub: Hub, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(card)
    known = _hash(_locked(card))
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "other"))
    hub.downloads.clear()
    hub.revision = "f" * 40
    found = _locked(card)
    assert state(found) == "needs download"
    with pytest.raises(DataError, match="frugalbench fetch tiny"):
        data_path(found)
    fetch(found)
    assert len(hub.downloads) == 3
    assert {revision for _, revision in hub.downloads} == {REVISION}
    assert _hash(_locked(card)) == known
    fetch(found)
    assert len(hub.downloads) == 3


def test_a_file_that_differs_from_the_lock_is_not_kept(
    hub: Hub, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(card)
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "other"))
    hub.put("data/test-00000-of-00001.parquet", [0, 1], text=["red red", "blue three"])
    found = _locked(card)
    with pytest.raises(DataError) as caught:
        fetch(found)
    for part in ("data/test-00000-of-00001.parquet", REVISION, "the lock says", "nothing was kept"):
        assert part in str(caught.value)
    assert state(found) == "needs download"


def test_an_altered_file_is_refused_and_fetch_replaces_it(hub: Hub, card: Card) -> None:
    folder = fetch(card)
    found = _locked(card)
    path = folder / "data/test-00000-of-00001.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"was altered: its sha256 is .* the lock says"):
        data_path(found)
    fetch(found)
    assert path.read_bytes() == whole
    assert data_path(found) == folder


def test_without_a_writable_checkout_the_lock_lies_in_the_cache(
    hub: Hub, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.data.locks.os.access", lambda *_: False)
    fetch(card)
    assert not (tmp_path / "cards" / "locks").exists()
    assert (tmp_path / "cache" / "datasets" / "locks" / "tiny.json").is_file()
    found = _locked(card)
    assert len(load_card_text(found, max_length=8).train) == 6


def test_a_lock_of_another_card_is_refused(hub: Hub, card: Card, tmp_path: Path) -> None:
    fetch(card)
    other = _card(tmp_path / "cards", splits={"train": "train", "validation": 0.4, "test": "test"})
    with pytest.raises(
        InvalidFileError, match=r"tiny\.json: was made from another version.*remove"
    ):
        locked(other)


def test_a_damaged_lock_is_told(hub: Hub, card: Card, tmp_path: Path) -> None:
    fetch(card)
    path = tmp_path / "cards" / "locks" / "tiny.json"
    path.write_text(path.read_text().replace('"rows"', '"row"'))
    with pytest.raises(InvalidFileError, match=r"tiny\.json: parts\.0\.files\.0\.rows"):
        locked(card)


def test_a_failed_first_download_locks_nothing(hub: Hub, card: Card) -> None:
    hub.put("data/test-00000-of-00001.parquet", [0, 7], text=["red red", "blue two"])
    with pytest.raises(DataError, match="label 7 is out of range"):
        fetch(card)
    assert locked(card) is None
    hub.put("data/test-00000-of-00001.parquet", [0, 1], other=["red red", "blue two"])
    with pytest.raises(DataError, match="has the columns label, other"):
        fetch(card)
    path = hub.folder / "data/test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match="no whole Parquet file"):
        fetch(card)
    assert locked(card) is None


def test_files_that_are_not_there_are_told_with_those_that_are(hub: Hub, card: Card) -> None:
    (hub.folder / "data/test-00000-of-00001.parquet").rename(hub.folder / "other.parquet")
    with pytest.raises(DataError) as caught:
        fetch(card)
    assert "some/tiny has no file data/test-*.parquet; there are" in str(caught.value)
    assert "other.parquet" in str(caught.value)


class TransportError(Exception):
    """Like those of the client's HTTP library: no OSError, and of no base that we know."""


def _refusal(kind: type[Exception], text: str) -> Exception:
    error = kind.__new__(kind)  # the real ones want a response of the HTTP library in use
    Exception.__init__(error, text)
    return error


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: _refusal(GatedRepoError, "Access is restricted"),
            [
                "is gated",
                "https://huggingface.co/datasets/some/tiny",
                "`hf auth login`",
                "HF_TOKEN",
            ],
        ),
        (
            lambda: _refusal(RepositoryNotFoundError, "404: no such repository\nmore"),
            ["the hub has no some/tiny", "404: no such repository", "`hf auth login`"],
        ),
        (lambda: EntryNotFoundError("no such file"), ["the hub has no some/tiny", "no such file"]),
        (
            lambda: LocalEntryNotFoundError("not in the cache"),
            ["cannot be reached (not in the cache)", "--data", "FRUGALBENCH_DATA"],
        ),
        (
            lambda: TransportError("Name or service not known"),
            ["cannot be reached (Name or service not known)", "run `frugalbench fetch tiny`"],
        ),
    ],
)
def test_what_the_hub_refuses_is_one_message_that_says_what_to_do(
    hub: Hub, card: Card, make: Callable[[], Exception], said: list[str]
) -> None:
    hub.error = make()
    with pytest.raises(DataError) as caught:
        fetch(card)
    text = str(caught.value)
    assert "data set 'tiny'" in text
    assert "\n" not in text
    for part in said:
        assert part in text
    assert locked(card) is None


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FRUGALBENCH_DATA", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def test_the_real_client_offline_is_one_message(
    offline: None, card: Card, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match=r"cannot be reached \(.*offline.*HF_HUB_OFFLINE"):
        fetch(card)
    assert app.run(["fetch", "yelp-review-full"]) == 2
    out, err = capsys.readouterr()
    assert out == "yelp-review-full: fetching Yelp/yelp_review_full (hub) …\n"
    assert "Go online" in err
    assert "Traceback" not in err


def test_loading_what_nobody_fetched_says_how(offline: None) -> None:
    for name in DATASETS.names():
        card = find_card(name)
        if state(card) == "unverified":
            with pytest.raises(
                DataError, match=rf"run `frugalbench fetch {name}`, or name a local"
            ):
                load_data(name, max_length=64)
