from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import paths
from benchmarks.checking import accept as accepting
from benchmarks.checking.accept import NotAcceptableError, accept_suite
from benchmarks.checking.check import check_suite
from benchmarks.checking.privacy import own_names, private_parts
from benchmarks.errors import StorageError, UsageError
from benchmarks.results import collect

if TYPE_CHECKING:
    from conftest import World


@pytest.fixture
def quick_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of one line: drawing figures is tested elsewhere."""
    from benchmarks.reporting import report

    def write(results: object, claims: object, folder: Path, *, reference: bool) -> Path:
        assert reference
        (folder / "README.md").write_text("# report\n")
        return folder

    monkeypatch.setattr(report, "write", write)


def left_over(world: World) -> list[str]:
    return [path.name for path in (world.root / "reports/reference").iterdir()]


@pytest.mark.usefixtures("quick_report")
def test_accept_then_check_is_green_and_a_second_time_appends(world: World) -> None:
    world.fill()
    folder = accept_suite("tiny", "  first \n results ")
    assert folder == world.root / "reports/reference/tiny"
    current, reference = collect("tiny"), collect("tiny", reference=True)
    assert not reference.missing
    assert len(reference.records) == len(current.records)
    record = next(record for record in reference.records if record.meter == "accuracy")
    arrays = reference.arrays(record)
    assert arrays is not None
    assert list(arrays["row_id"]) != sorted(arrays["row_id"])  # as it was written
    assert not check_suite("tiny").changes
    world.parameters["budget"] += 1
    world.fill()
    assert check_suite("tiny").regressions
    accept_suite("tiny", "wider controller")
    assert not check_suite("tiny").changes
    log = (folder / "ACCEPTED.md").read_text().splitlines()[2:]
    assert [line.partition(": ")[2] for line in log] == ["first results", "wider controller"]
    assert left_over(world) == ["tiny"]


def test_accept_refuses_without_a_reason(world: World) -> None:
    world.fill()
    with pytest.raises(UsageError, match="needs a reason"):
        accept_suite("tiny", " \n")


def test_accept_refuses_missing_and_failed_records(world: World) -> None:
    world.fill(without=[("budget", "memory")])
    with pytest.raises(NotAcceptableError, match=r"1 records .* missing .*budget on r8, seed 0"):
        accept_suite("tiny", "why")
    world.fail(world.find("budget", 0, "memory"))
    with pytest.raises(NotAcceptableError, match=r"1 records .* failed: budget on r8, memory"):
        accept_suite("tiny", "why")
    assert not (world.root / "reports").exists()


def test_accept_refuses_outside_a_checkout(world: World) -> None:
    (world.root / "pyproject.toml").unlink()
    with pytest.raises(UsageError, match="Clone the repository"):
        accept_suite("tiny", "why")


def test_accept_refuses_a_foreign_suite(world: World, tmp_path: Path) -> None:
    foreign = tmp_path / "mine.toml"
    foreign.write_text((world.root / "benchmarks/suites/tiny.toml").read_text())
    with pytest.raises(UsageError, match="not one of the repository's own suites"):
        accept_suite(str(foreign), "why")


@pytest.mark.usefixtures("quick_report")
def test_accept_refuses_a_record_with_a_path_and_keeps_the_old_reference(world: World) -> None:
    world.fill()
    folder = accept_suite("tiny", "first")
    before = sorted(path.name for path in (folder / "records").iterdir())
    world.write(world.find("dense", 0, "memory"), info={"where": "/home/someone/data/x.csv"})
    with pytest.raises(NotAcceptableError, match="/home/someone/data/"):
        accept_suite("tiny", "second")
    assert sorted(path.name for path in (folder / "records").iterdir()) == before
    assert "second" not in (folder / "ACCEPTED.md").read_text()
    assert left_over(world) == ["tiny"]


def test_accept_that_breaks_half_way_keeps_the_old_reference(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.reporting import report

    world.fill()
    folder = world.root / "reports/reference/tiny"
    (folder / "records").mkdir(parents=True)
    (folder / "ACCEPTED.md").write_text("old\n")

    def full(*_: object, **__: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write", full)
    with pytest.raises(StorageError, match="No space left on device"):
        accept_suite("tiny", "why")
    assert (folder / "ACCEPTED.md").read_text() == "old\n"
    assert left_over(world) == ["tiny"]


def test_swap_puts_the_old_one_back(tmp_path: Path) -> None:
    final = tmp_path / "suite"
    final.mkdir()
    (final / "old").touch()
    with pytest.raises(StorageError, match="cannot put the new reference in place"):
        accepting._swap(tmp_path / "absent", final)
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]
    assert (final / "old").exists()


@pytest.mark.parametrize(
    "text",
    ["see /var/lib/x/y.txt", "file:/etc/x/passwd was", str(Path.home() / "x" / "y"), "(/a/b)"],
)
def test_private_parts_are_found(text: str) -> None:
    text = text.replace("file:", "file ")
    assert private_parts(text)


@pytest.mark.parametrize(
    "text",
    [
        "benchmarks/running/jobs.py",
        "https://arxiv.org/abs/2604.22583",
        "3 of 8 heads, 1/2, g/kWh",
        "square root of n, the user",
        "~/data/x",
        "Linux 6.1, x86_64 (avx512f)",
    ],
)
def test_ordinary_text_is_not_private(text: str) -> None:
    assert private_parts(text) == []


def test_host_and_user_are_found_unless_they_are_anyones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "crow17.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    own_names.cache_clear()
    try:
        assert private_parts("measured on crow17") == ["crow17"]
        assert private_parts("the square root") == []
        assert private_parts("crow171") == []
    finally:
        own_names.cache_clear()


def test_records_of_this_machine_hold_nothing_private(world: World) -> None:
    world.fill()
    for path in (paths.runs_dir() / "records").glob("*/*.json"):
        for text in accepting._texts(json.loads(path.read_text())):
            assert private_parts(text) == []
