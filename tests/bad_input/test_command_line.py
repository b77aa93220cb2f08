"""Wrong words, wrong places, poor terminals and broken files on the command line."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import benchmarks.registry
import models
from benchmarks import catalog
from benchmarks.cli.app import run
from benchmarks.paths import CHECKOUT
from benchmarks.registry import Registry

if TYPE_CHECKING:
    from conftest import WriteSuite


def message(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """What a command says on stderr; it must end with `code` and without a traceback."""
    assert run(arguments) == code
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err


def in_process(
    *arguments: str, out: int | None = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Usage: frugalbench"),
        (["run", "quick", "--jobs", "0"], "'--jobs': .*greater than or equal to 1"),
        (["run", "quick", "--engine", "locl"], "unknown engine 'locl'; did you mean 'local'"),
        (["run", "quick", "--only", "budget-lo"], "--only: unknown .*did you mean 'budget-low'"),
        (["plan", "quick", "--only", "dense", "--only", "r9"], "--only: .*'r9'; .*'r8'"),
        (["plan", "quick", "--only", ""], "--only: unknown .* ''"),
        (["run", "quick", "--data", "/no/data"], "bench: --data: there is no folder .* /no/data"),
        (["fetch", "r9"], "unknown data set or suite 'r9'; did you mean 'r8'"),
        (["show", "zzz"], "no point with a record under .* begins with 'zzz'"),
        (["show", ""], "no point with a record"),
        (["show", "**"], "no point with a record"),
        (["show", "/etc/passwd"], "no point with a record"),
        (["accept", "smoke", "--reason", " "], "accept needs a reason"),
        (["accept", "smoke"], "Missing option '--reason'"),
    ],
)
def test_wrong_words_are_one_message(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(said, message(arguments, capsys))


def test_without_records_nothing_passes_and_nothing_is_accepted(
    capsys: pytest.CaptureFixture[str], own_runs: Path
) -> None:
    assert run(["check", "smoke"]) == 4
    assert "nothing could be checked" in capsys.readouterr().out
    assert "30 records of 'smoke' are missing" in message(
        ["accept", "smoke", "--reason", "first"], capsys, code=1
    )
    assert run(["report", "smoke"]) == 0
    assert (own_runs / "reports/smoke/README.md").is_file()


def test_several_points_of_one_beginning_are_listed(
    own_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("xy1", "xy2"):
        (own_runs / "records" / name).mkdir(parents=True)
        (own_runs / "records" / name / "flops-0.json").write_text("{")
    assert "2 points begin with 'xy': xy1, xy2; give more letters" in message(
        ["show", "xy"], capsys
    )
    with pytest.warns(UserWarning, match="is damaged"):
        assert "every record of xy1 is damaged" in message(["show", "xy1"], capsys)


@pytest.mark.parametrize("variable", ["FRUGALBENCH_RUNS", "FRUGALBENCH_CACHE"])
def test_a_folder_variable_that_names_no_folder_is_told(
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    for command in (["plan", "smoke"], ["run", "smoke"]):
        assert f"{variable} = {tmp_path / 'file'}: is a file" in message(command, capsys)
    monkeypatch.setenv(variable, "~nobody-of-this-name/x")
    assert "there is no such home folder" in message(["plan", "smoke"], capsys)


@pytest.mark.usefixtures("tiny")
def test_a_terminal_without_unicode_still_gets_its_text(
    write_suite: WriteSuite, own_runs: Path
) -> None:
    text = Path(write_suite()).read_text().replace('"tiny"', '"r8"')
    path = own_runs.parent / "süß.toml"
    path.write_text(text)
    poor = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = in_process("check", str(path), **poor)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith("s??: 0 records, 9 not measured yet")
    done = in_process("plan", "süß.toml", **poor)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize("arguments", [["list"], ["plan", "quick"]])
def test_a_reader_that_leaves_early_is_no_error(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = in_process(*arguments, out=writer)
    os.close(writer)
    assert done.stderr == ""


def test_a_damaged_record_is_told_in_one_line(own_runs: Path) -> None:
    done = in_process("plan", "smoke", "--json")
    point = json.loads(done.stdout)["points"][0]["point_id"]
    folder = own_runs / "records" / point
    folder.mkdir(parents=True)
    (folder / "flops-0123456789ab.json").write_text('{"schema_version": 1, "me')
    done = in_process("show", point)
    assert [line[:13] for line in done.stderr.splitlines()] == ["frugalbench: ", "frugalbench: "]
    assert "is damaged (Unterminated string" in done.stderr.splitlines()[0]


BROKEN = [
    ("import a_library_that_is_not_here\n", "ModuleNotFoundError"),
    ("def (\n", "SyntaxError"),
    ("raise SystemExit(3)\n", "SystemExit"),
    ("x = 1\n", "must define exactly one ModelConfig subclass"),
]


@pytest.fixture
def models_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are model files too; the registry is filled anew."""
    folder = tmp_path / "models"
    folder.mkdir()
    for path in (CHECKOUT / "models").glob("*_config.py"):
        (folder / path.name).touch()
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(folder)])
    monkeypatch.setattr(catalog, "CHECKOUT", tmp_path)
    monkeypatch.setattr(catalog.MODELS, "_filled", False)
    monkeypatch.setattr(catalog.MODELS, "_entries", {})
    return folder


@pytest.mark.parametrize(("content", "said"), BROKEN)
def test_a_broken_model_file_is_named_and_harms_no_other_model(
    content: str, said: str, models_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (models_here / "broken_config.py").write_text(content)
    sys.modules.pop("models.broken_config", None)
    assert run(["plan", "smoke"]) == 0
    assert run(["list", "models", "--json"]) == 0
    out = capsys.readouterr().out
    rows = json.loads(out[out.index("[\n") :])
    (summary,) = [row["summary"] for row in rows if row["name"] == "broken"]
    assert summary.startswith("invalid: models/broken_config.py ")
    assert said in summary
    assert run(["validate"]) == 2
    assert f"{said}" in capsys.readouterr().out


def test_an_outside_package_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[frugalbench.meters]\nlost = outside_lost:LOST\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(benchmarks.registry, "_entry_points", importlib.metadata.entry_points)
    meters = Registry("meter", group="frugalbench.meters", discover=catalog._meters)
    monkeypatch.setattr(catalog, "METERS", meters)
    assert run(["list", "meters"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "meter 'lost' from package outside (outside_lost:LOST) cannot be loaded" in text
    assert run(["validate"]) == 2


def test_validate_names_the_claim_whose_suite_is_unknown_and_the_card_with_wrong_counts(
    tmp_path: Path,
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    claims = tmp_path / "claims"
    claims.mkdir()
    source = CHECKOUT / "benchmarks/claims/macs-saved.toml"
    text = re.sub(r"(?m)^suite = .*", 'suite = "quik"', source.read_text(encoding="utf-8"))
    (claims / source.name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("benchmarks.paths.resource_dir", lambda _: claims)
    card = tmp_path / "tiny.toml"
    card.write_text(card.read_text().replace("train = 12", "train = 11"))
    catalog.DATASETS._values.pop("tiny")
    assert run(["validate"]) == 2
    out = capsys.readouterr().out
    assert "macs-saved.toml: suite: unknown suite 'quik'; did you mean 'quick'?" in out
    assert "splits/tiny.json: train has 12 row ids, the card's counts.train says 11" in out
