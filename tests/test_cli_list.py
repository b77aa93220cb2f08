from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import benchmarks.paths
from benchmarks.cli import app
from benchmarks.errors import BusyError
from benchmarks.paths import CHECKOUT

HEAVY = ("torch", "pandas", "scipy", "statsmodels", "matplotlib", "pyarrow", "numpy")


def in_process(*arguments: str, columns: int = 80) -> tuple[str, list[str]]:
    """Output, and heavy modules imported, of one command in a process of its own."""
    code = (
        "import sys\nfrom benchmarks.cli.app import run\n"
        f"code = run({list(arguments)!r})\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={"COLUMNS": str(columns), "PYTHONPATH": str(CHECKOUT), "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = done.stderr.splitlines()[-1]
    return done.stdout, json.loads(imported.replace("'", '"'))


@pytest.mark.parametrize("arguments", [["list"], ["plan", "quick"]])
def test_list_and_plan_import_nothing_heavy(arguments: list[str]) -> None:
    _, imported = in_process(*arguments)
    assert imported == []


@pytest.mark.parametrize("columns", [80, 40, 20])
def test_names_are_whole_and_plain_in_a_pipe(columns: int) -> None:
    text, _ = in_process("list", columns=columns)
    assert "\x1b" not in text
    words = text.split()
    for name in ("quick", "rotten-tomatoes", "random-at-test", "latency", "accuracy-not-lower"):
        assert name in words
    if columns == 80:
        assert max(map(len, text.splitlines())) <= 80


def test_data_sets_say_how_they_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path))
    assert app.run(["list", "datasets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["r8"]["state"] == "needs download"
    assert rows["r8"]["rows"] == "4,928 / 549 / 2,189"
    assert rows["r8"]["role"] == "stand-in for AG News"
    assert (rows["snli"]["state"], rows["snli"]["rows"]) == ("unverified", "not known yet")
    assert rows["random-tokens"]["state"] == "available"


@pytest.mark.parametrize("what", ["suites", "models", "datasets", "meters", "claims"])
def test_each_list_as_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert all(row["name"] for row in rows)
    assert app.run(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[what] == rows


def test_a_broken_suite_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (CHECKOUT / "benchmarks/suites/smoke.toml").read_text()
    (tmp_path / "good.toml").write_text(good)
    (tmp_path / "bad.toml").write_text("schema = 1\n")
    monkeypatch.setattr("benchmarks.planning.suite.resource_dir", lambda _: tmp_path)
    assert app.run(["list", "suites", "--json"]) == 0
    bad, fine = json.loads(capsys.readouterr().out)
    assert bad["title"].startswith("invalid: ")
    assert "title: Field required" in bad["title"]
    assert (fine["name"], fine["points"]) == ("good", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "modls"], "frugalbench: unknown list 'modls'; did you mean 'models'?"),
        (["plan", "quik"], "frugalbench: unknown suite 'quik'; did you mean 'quick'?"),
        (["plan", "no-such-file.toml"], "no-such-file.toml: cannot be read"),
        (["lst"], "No such command 'lst'"),
        (["list", "--jsn"], "No such option"),
    ],
)
def test_a_user_s_mistake_is_a_line_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BusyError("another run holds it"), 2, "frugalbench: another run holds it\n"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), 2, "runs/x: No space left"),
        (OSError(errno.EROFS, "Read-only file system", "runs/x"), 2, "runs/x: Read-only"),
        (KeyboardInterrupt(), None, ""),
    ],
)
def test_how_errors_end(
    error: BaseException,
    code: int | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("benchmarks.cli.list.TABLES", {"models": fail})
    ended = app.run(["list", "models"])
    assert ended == (130 if code is None else code)
    assert message in capsys.readouterr().err


def test_another_exception_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cli.list.TABLES", {"models": lambda: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        app.run(["list", "models"])


def test_models_from_elsewhere_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks.paths, "CHECKOUT", tmp_path)
    assert app.run(["list"]) == 2
    assert "another package called 'models' is in the way" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text and line in text for name, line in app.COMMANDS.items())
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == benchmarks.__version__


@pytest.mark.parametrize("name", sorted(app.COMMANDS))
def test_every_subcommand_has_its_own_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([name, "--help"]) == 0
    assert f"frugalbench {name}" in capsys.readouterr().out


def test_validate_finds_nothing_wrong_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["validate"]) == 0
    assert "problems: none" in capsys.readouterr().out


def test_validate_tells_every_problem_of_every_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.toml").write_text("schema = 2\nseeds = []\n")
    (tmp_path / "two.toml").write_text("title = \n")
    monkeypatch.setattr("benchmarks.planning.suite.resource_dir", lambda _: tmp_path)
    assert app.run(["validate", "--json"]) == 2
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    text = "\n".join(found["problems"])
    for part in ("one.toml: schema:", "one.toml: seeds:", "one.toml: title:", "two.toml: is not"):
        assert part in text
    assert found["checked"] > len(found["problems"]) / 2


def test_what_a_model_needs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["list", "models", "--json"]) == 0
    needs = {row["name"]: row["needs"] for row in json.loads(capsys.readouterr().out)}
    assert (needs["vit"], needs["avit"], needs["vit-hybrid"]) == ("", "a base", "teacher")
    assert (needs["static-heads"], needs["fewer-heads"]) == ("budgets and a base", "MACs")
