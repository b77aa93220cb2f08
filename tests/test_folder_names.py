"""The checkout's `datasets/` folder neither hides, nor is hidden by, the library of that name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.paths import CHECKOUT


def python(code: str, *, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


LIST = "from benchmarks.cli.app import run; raise SystemExit(run(['list', 'datasets', '--json']))"


@pytest.mark.parametrize("installed", [True, False])
def test_cards_are_found_whether_or_not_the_library_is_installed(
    tmp_path: Path, *, installed: bool
) -> None:
    if installed:
        (tmp_path / "datasets").mkdir()
        (tmp_path / "datasets/__init__.py").write_text("who = 'the library'\n")
        assert python("import datasets; print(datasets.who)", path=tmp_path) == "the library"
    assert '"rotten-tomatoes"' in python(LIST, path=tmp_path)


def test_no_python_lies_in_the_folders_of_data_and_documents() -> None:
    for folder in ("datasets", "reports", "weights"):
        assert not list((CHECKOUT / folder).rglob("*.py"))
