from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.report import report as run_report
from benchmarks.errors import StorageError, UsageError
from benchmarks.paths import CHECKOUT
from benchmarks.reporting import report
from benchmarks.reporting.figures.gallery import render_all
from benchmarks.reporting.page import page
from benchmarks.reporting.report import README, replace_folder, write
from benchmarks.reporting.view import View

PROGRAM = """
import sys
from benchmarks.cli.app import run
code = run(["report", sys.argv[1]])
assert "torch" not in sys.modules
sys.exit(code)
"""


def test_the_command_needs_no_torch_and_prints_where_the_report_is(
    made_up: Any, tuning: Any
) -> None:
    made_up.write(tuning(keep=lambda wanted: wanted.point.seed == 0))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(made_up.path)],
        env={**os.environ, "FRUGALBENCH_RUNS": str(made_up.runs)},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    readme = made_up.runs / "reports" / "suite" / README
    assert done.stdout.strip() == str(readme)
    assert done.stderr == ""
    assert readme.is_file()


def test_the_command_says_that_nothing_was_measured(
    made_up: Any, not_drawn: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("FRUGALBENCH_RUNS", str(made_up.runs))
    run_report(str(made_up.path))
    printed = capsys.readouterr()
    assert printed.err.startswith("Nothing was measured yet: ")
    assert printed.out.strip().endswith(README)


def test_the_same_records_give_the_same_bytes(finished: Any, rendered: Any) -> None:
    again = render_all(View(finished))
    assert [(f.svg, f.note) for f in again] == [(f.svg, f.note) for f in rendered]
    pages = [page(View(finished), [], rendered) for _ in range(2)]
    assert pages[0] == pages[1]


def test_a_report_is_one_page_and_its_figures(
    finished: Any, drawn_before: None, tmp_path: Path
) -> None:
    folder = write(finished, [], tmp_path / "deep" / "out")
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "figures"]
    assert len(list((folder / "figures").iterdir())) == 9
    assert stat.S_IMODE(folder.stat().st_mode) & 0o500 == 0o500


def test_a_new_report_replaces_the_old_and_keeps_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "quick"
    replace_folder(folder, {README: b"old", "figures/gone.svg": b"<svg/>"})
    (folder / "records").mkdir()
    (folder / "records" / "a.json").write_text("{}")
    replace_folder(folder, {README: b"new", "figures/here.svg": b"<svg/>"})
    assert (folder / README).read_bytes() == b"new"
    assert [p.name for p in (folder / "figures").iterdir()] == ["here.svg"]
    assert (folder / "records" / "a.json").read_text() == "{}"
    assert [p.name for p in folder.parent.iterdir()] == ["quick"]


def test_a_failed_write_leaves_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "quick"
    replace_folder(folder, {README: b"old"})

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        replace_folder(folder, {README: b"new"})
    assert (folder / README).read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["quick"]


def test_a_full_disk_is_one_clear_message(
    finished: Any, not_drawn: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, files: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "replace_folder", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write(finished, [], tmp_path / "out")


def test_a_readme_that_is_no_report_is_not_overwritten(finished: Any, tmp_path: Path) -> None:
    (tmp_path / README).write_text("# My project\n")
    with pytest.raises(UsageError, match="was not written by"):
        write(finished, [], tmp_path)
    assert (tmp_path / README).read_text() == "# My project\n"


def test_a_file_is_no_folder(finished: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        write(finished, [], tmp_path / "out")
