"""Every mistake in a suite file is one clear message that names the file, and exit code 2."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.cli.app import run

if TYPE_CHECKING:
    from conftest import WriteSuite

pytestmark = pytest.mark.usefixtures("tiny")

NAMED = [
    ("s_min = 0.1", "s_min = 0.5", r"'low'.*s_min = 0\.5 is greater than s_max = 0\.3; swap them"),
    ("n_heads = 4", "n_heads = 5", r"n_heads = 5 does not divide d_model = 16; nearest.*2, 4, 8"),
    ("depth = 1", "depth = 0", "depth must be at least 1, not 0"),
    ("depth = 1", "depth = -2", "depth must be at least 1, not -2"),
    ("depth = 1", "depth = 1000000000", r"params\.depth: 1000000000 is beyond 1048576"),
    ("depth = 1,", "depth = 1" + 30 * "0" + ",", r"params\.depth: 10+ is beyond 1048576"),
    ("depth = 1", "depth = 5000", "depth must be at most 1024, not 5000"),
    ("depth = 1", "depth = 'two'", r"params\.depth: .*not 'two'"),
    ("depth = 1", "depth = 2020-01-01", r"params\.depth: .*is no plain value"),
    ("max_length = 8", "max_length = 1000000000", r"max_length: .*1048576, not 1000000000"),
    ("epochs = 1", "epochs = 1000000000000", r"recipe: epochs: 1000000000000 is beyond"),
    ("epochs = 1", "epochs = -1", "recipe: epochs must be positive, not -1"),
    ("epochs = 1", "peak_lr = inf", "recipe: peak_lr: inf is no plain value"),
    ("s_min = 0.1", "s_min = nan", r"params\.s_min: nan is no plain value"),
    ("max_length = 8", "max_length = 8\ntrain_fraction = nan", r"train_fraction: .*not nan"),
    ("seeds = [0]", "seeds = []", "seeds: List should have at least 1 item, not 0"),
    ("seeds = [0]", "seeds = [-1]", r"seeds\[0\]: .*not -1"),
    ("seeds = [0]", "seeds = [18446744073709551616]", r"seeds\[0\]: .*4294967295, not 18"),
    ("seeds = [0]", "seeds = 'first'", "seeds: Input should be a valid list, not 'first'"),
    ('["tiny"]', "[]", r"datasets: List should have at least 1 item, not 0"),
    ('["tiny"]', '["tinny"]', r"datasets: unknown data set 'tinny'; did you mean 'tiny'\?"),
    ('"flops"]', '"flop"]', r"meters: unknown meter 'flop'; did you mean 'flops'\?"),
    (
        '"dense"\nparams',
        '"dens"\nparams',
        r"baseline: unknown variant 'dens'; did you mean 'dense'",
    ),
    ('"dense"\nmodel = "dense"', '"dense"\nmodel = "dens"', r"unknown model 'dens'; .*'dense'"),
    ("[[sweep]]", "[sweep]", "sweep: Input should be a valid list"),
    ('title = "Tiny"', "title = 7", "title: Input should be a valid string, not 7"),
    ('label = "low"', 'label = "dense"', "variants: label dense is given 2 times"),
    ('source = "low"', 'source = "lo"', r"'random': source: unknown variant 'lo'; .*'low'"),
]

BESIDE = [
    ("axes = { dept = [1] }", r"axes: unknown axis 'dept'; did you mean 'depth'"),
    ("axes = { depth = [1000000000] }", r"axes\.depth: must be at most 1048576"),
    ("axes = { depth = [nan] }", r"axes\.depth: must be a whole number of at least 1, not nan"),
    ("axes = { seed = [4294967296] }", r"axes\.seed: .*not 4294967296 \(and at most 4294967295\)"),
    ("axes = { peak_lr = [inf] }", r"peak_lr: inf is no plain value"),
    (
        f"axes = {{ depth = {list(range(1, 102))}, max_length = {list(range(8, 108))} }}",
        "asks for 30300 points, and 10000 is the most; split it",
    ),
    ("options = { flops = { batch_size = -1 } }", r"options\.flops\.batch_size: must be a whole"),
    ("options = { latency = { n_processes = 'x' } }", r"n_processes: must be .*not 'x'"),
    ("options = { latency = { n_processes = 1000000 } }", r"n_processes: .*to 100, not 1000000"),
    ("options = { latency = { batch_sizes = 3 } }", r"batch_sizes: must be a list .*not 3"),
    ("options = { latency = { batch_sizes = [0] } }", r"batch_sizes: must be a list .*not \[0\]"),
    ("options = { latency = { seed = -1 } }", r"latency\.seed: must be a whole number from 0"),
    ("options = { carbon = { window_s = nan } }", r"window_s: must be a number of seconds"),
    ("options = { carbon = { country = 1 } }", r"carbon\.country: must be an ISO 3166 .*, not 1"),
    ("options = { carbon = { country = 'France' } }", r"three letters, e\.g\. FRA.*not 'France'"),
]


def refused(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a suite that must be refused, by `plan` as by `run`."""
    said = []
    for command in ("plan", "run"):
        assert run([command, path]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"frugalbench: {path}: ")
        assert "Traceback" not in err
        said.append(err)
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize(("old", "new", "message"), NAMED, ids=[new for _, new, _ in NAMED])
def test_a_wrong_value_is_named(
    old: str, new: str, message: str, write_suite: WriteSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(message, refused(write_suite((old, new)), capsys))


@pytest.mark.parametrize(("line", "message"), BESIDE, ids=[line[:40] for line, _ in BESIDE])
def test_a_wrong_axis_or_option_is_named(
    line: str, message: str, write_suite: WriteSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_suite(('baseline = "dense"', f'baseline = "dense"\n{line}'))
    assert re.search(message, refused(path, capsys))


def test_sources_in_a_circle_are_named(
    write_suite: WriteSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '\n[[sweep.variants]]\nlabel = "fewer"\nmodel = "fewer-heads"\nsource = "random"\n'
    path = write_suite(('source = "low"\n', f'source = "fewer"\n{more}'))
    assert "depends on itself: random -> fewer -> random" in refused(path, capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "schema: Field required"),
        (b"seeds = [0\ntitle = 1\n", "is not valid TOML: .*line 2"),
        (b"seeds = [0]\nseeds = [1]\n", "is not valid TOML: .*line 2"),
        (b'schema = 1\ntitle = "\xff"\n', r"is not UTF-8 text \(line 2\)"),
        ("title = 'x'".encode("utf-16"), r"is not UTF-8 text \(line 1\)"),
        (b"seeds = [" + 5000 * b"9" + b"]\n", "is not valid TOML: Exceeds the limit"),
        (b"seeds = " + 3000 * b"[" + 3000 * b"]", "is not valid TOML: .*recursion"),
    ],
    ids=["empty", "open", "twice", "latin", "utf-16", "digits", "nested"],
)
def test_a_file_that_is_no_toml_is_told_with_its_line(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    assert re.search(message, refused(str(path), capsys))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_spaces_other_alphabets_and_a_mark_at_the_start_do_no_harm(
    mark: bytes, write_suite: WriteSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(write_suite(name="süß 試 1.toml"))
    path.write_bytes(mark + path.read_bytes().replace(b"\n", b"\r\n"))
    assert run(["plan", str(path)]) == 0
    assert "3 points, 0 of 9 records done" in capsys.readouterr().out


def test_a_folder_and_an_impossible_path_are_no_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").mkdir()
    assert "cannot be read: Is a directory" in refused(str(tmp_path / "mine.toml"), capsys)
    assert "cannot be read: embedded null" in refused("a\0b.toml", capsys)
    assert "cannot be read: File name too long" in refused(5000 * "a" + ".toml", capsys)
