"""The artifact store: whole or not at all, verified, one trainer per key."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import StorageError
from benchmarks.training.artifacts import Artifact, ArtifactStore
from benchmarks.training.record import EpochRecord, TrainingRecord, ValidationScores
from models.config import TrainedSummary

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "ab" + "0" * 62
EPOCH = EpochRecord(
    epoch=1,
    steps=7,
    seconds=0.5,
    lr=0.001,
    losses={"task": 0.25, "total": 0.25},
    train_accuracy=0.5,
    validation_accuracy=0.75,
    mean_s=0.3,
    mean_k=2.5,
    entropy=0.9,
    schedules={"tau": 0.5},
)
SUMMARY = TrainedSummary(
    params={"depth": 1}, k_histogram=[[0, 3, 1]], mean_macs=12.5, lengths=[3, 4, 5, 5]
)


def save(store: ArtifactStore, key: str = KEY, size: int = 6) -> Artifact:
    return store.save(
        key,
        declared={"model": "dense", "seed": 0},
        config={"depth": 1},
        state={"weight": torch.arange(size, dtype=torch.float32)},
        record=TrainingRecord((EPOCH, replace(EPOCH, epoch=2, mean_s=None))),
        validation=ValidationScores(n=4, accuracy=0.75, macro_f1=0.7, soft_accuracy=None),
        summary=SUMMARY,
    )


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    assert not store.has(KEY)
    with store.lock(KEY):
        saved = save(store)
    assert store.has(KEY)
    read = store.load(KEY)
    assert read == saved
    assert read.summary == SUMMARY
    assert read.record.epochs[0] == EPOCH
    assert read.record.steps == 14
    assert read.record.seconds == pytest.approx(1.0)
    assert torch.equal(read.state_dict()["weight"], torch.arange(6, dtype=torch.float32))
    assert read.folder == tmp_path / "ab" / KEY


def test_the_description_names_no_path_of_this_machine(tmp_path: Path) -> None:
    save(ArtifactStore(tmp_path))
    text = (tmp_path / "ab" / KEY / "artifact.json").read_text()
    assert str(tmp_path) not in text
    assert str(Path.cwd()) not in text


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_altered_byte_of_the_weights_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = ArtifactStore(tmp_path_factory.mktemp("store"))
    artifact = save(store)
    path = artifact.folder / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    for read in (lambda: store.load(KEY), artifact.state_dict):
        with pytest.raises(StorageError, match=r"weights\.safetensors.*SHA-256.*Delete the folder"):
            read()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError: 'schema_version'"),
        (json.dumps({"schema_version": 2}), "schema_version is 2, this program reads 1"),
    ],
)
def test_a_damaged_description_is_named(tmp_path: Path, text: str, why: str) -> None:
    store = ArtifactStore(tmp_path)
    path = save(store).folder / "artifact.json"
    path.write_text(text)
    with pytest.raises(StorageError, match=r"artifact\.json cannot be used") as caught:
        store.load(KEY)
    assert why in str(caught.value)
    assert "run again" in str(caught.value)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    (save(store).folder / "weights.safetensors").unlink()
    with pytest.raises(StorageError, match=r"weights\.safetensors.*No such file"):
        store.load(KEY)


def test_weights_that_are_no_tensors_are_named(tmp_path: Path) -> None:
    artifact = save(ArtifactStore(tmp_path))
    path = artifact.folder / "weights.safetensors"
    path.write_bytes(b"no tensors at all")
    artifact = replace(artifact, weights_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(StorageError, match=r"weights\.safetensors cannot be used: .*deserializing"):
        artifact.state_dict()


def test_remains_of_a_killed_write_are_ignored_and_cleaned(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    remains = tmp_path / "ab" / f".{KEY}.12345"
    half = tmp_path / "ab" / KEY
    for folder in (remains, half):
        folder.mkdir(parents=True)
        (folder / "weights.safetensors").write_bytes(b"half")
    assert not store.has(KEY)
    with store.lock(KEY):
        assert not remains.exists()
        save(store)
    assert store.load(KEY).record.steps == 14


@contextmanager
def _files_no_larger_than(n_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_midway_leaves_nothing_under_the_key(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with _files_no_larger_than(100_000), pytest.raises(StorageError, match=r"errno 27") as caught:
        save(store, size=100_000)
    assert KEY in str(caught.value)
    assert "FRUGALBENCH_RUNS" in str(caught.value)
    assert not store.has(KEY)
    assert list((tmp_path / "ab").iterdir()) == []


def test_a_full_disk_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        StorageError, match=r"weights\.safetensors: No space left on device \(errno 28"
    ):
        save(ArtifactStore(tmp_path))


def test_a_root_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    root = tmp_path / "a file"
    root.write_text("")
    store = ArtifactStore(root)
    with pytest.raises(StorageError, match="a file"), store.lock(KEY):
        pass
    with pytest.raises(StorageError, match="a file"):
        save(store)


def _train_once(root: str, log: str, barrier: Any) -> None:
    store = ArtifactStore(Path(root))
    barrier.wait()
    with store.lock(KEY):
        if not store.has(KEY):
            with Path(log).open("a") as file:
                file.write("trained\n")
            time.sleep(0.2)
            save(store)


@pytest.mark.slow
def test_two_processes_never_train_one_key_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the children import this very module by its name
    monkeypatch.syspath_prepend(str(Path(__file__).parents[len(__name__.split(".")) - 1]))
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    log = tmp_path / "log"
    args = (str(tmp_path / "store"), str(log), barrier)
    processes = [context.Process(target=_train_once, args=args) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert log.read_text() == "trained\n"
