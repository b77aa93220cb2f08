"""A record names nobody: no path, host or user in it."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest

from benchmarks.paths import CHECKOUT
from benchmarks.running.environment import describe, machine_fingerprint
from benchmarks.running.recording import failure_of, without_paths


def test_a_failure_keeps_its_traceback_without_absolute_paths(tmp_path: Path) -> None:
    hidden = f"secret{1}folder"
    try:
        (tmp_path / hidden / "weights.bin").read_bytes()
    except OSError as error:
        failure = failure_of(error)
    assert failure.type == "FileNotFoundError"
    assert "weights.bin" in failure.message
    assert 'File "tests/test_recording.py", line' in failure.traceback
    for text in (failure.message, failure.traceback):
        assert str(tmp_path) not in text
        assert hidden not in text
        assert str(CHECKOUT) not in text
        assert str(Path.home()) not in text


def test_a_failure_without_words_says_what_it_is() -> None:
    assert failure_of(MemoryError()).message.startswith("out of memory")
    assert failure_of(AssertionError()).message == "AssertionError"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at /home/ann/x/y.py:3", "at y.py:3"),
        ("ratio 1/8 and 3/4", "ratio 1/8 and 3/4"),
        ('File "/usr/lib/python3/a.py", line 1', 'File "a.py", line 1'),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
    ],
)
def test_only_paths_are_cut(text: str, expected: str) -> None:
    assert without_paths(text) == expected


def test_folders_with_spaces_are_cut_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRUGALBENCH_RUNS", "/data/Ann Smith/my runs")
    monkeypatch.setenv("FRUGALBENCH_CACHE", "/data/Ann Smith/my cache")
    text = "in /data/Ann Smith/my runs/records/a.json and /data/Ann Smith/my cache/packages/b.whl"
    assert without_paths(text) == "in runs/records/a.json and cache/packages/b.whl"
    monkeypatch.setenv("FRUGALBENCH_RUNS", ".")
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert without_paths("1/8 of it. Done.") == "1/8 of it. Done."


def test_the_environment_names_no_host_and_no_user() -> None:
    text = describe(["torch"], threads=1).model_dump_json()
    assert socket.gethostname() not in text
    assert f'"{getpass.getuser()}"' not in text
    assert machine_fingerprint() == machine_fingerprint()
