"""Local mirrors: their manifest, the name that their results carry, and the real one where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.catalog import DATASETS
from benchmarks.cli import app
from benchmarks.data.card import find_card
from benchmarks.data.fetch import data_path, fetch, state
from benchmarks.data.identity import data_hash
from benchmarks.data.load import load_text
from benchmarks.data.mirror import VARIABLE, read_manifest
from benchmarks.data.readers import read_rows
from benchmarks.data.splits import splits_of
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.meters.inputs import data_used
from benchmarks.paths import CHECKOUT
from benchmarks.running.files import sha256_of

REAL = CHECKOUT / "tests" / "mirror" / "mirror.toml"
ROOT = "FRUGALBENCH_DATA_ROOT"
RUN_AS = "ag-news (mirror: train 8 of many)"
WORDS = ["world", "ball", "money", "chip"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    if not request.node.get_closest_marker("data"):
        monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    # setenv first, so that what --data sets is undone even if it was not set before
    monkeypatch.setenv(VARIABLE, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A mirror of AG News with two training and one test row a class."""
    folder = tmp_path / "copies"
    (folder / "news").mkdir(parents=True)
    train = {"text": [f"{w} {w} one" for w in WORDS] + [f"{w} two two" for w in WORDS]}
    pq.write_table(pa.table(train | {"label": [*range(4)] * 2}), folder / "news/train.parquet")
    test = {"text": [f"{w} test" for w in WORDS], "label": [*range(4)]}
    pq.write_table(pa.table(test), folder / "news/test.parquet")
    return folder


def _manifest(folder: Path, *changes: tuple[str, str], root: str = "") -> str:
    train, test = (sha256_of(folder / f"news/{name}.parquet") for name in ("train", "test"))
    text = f"""
schema = 1
title = "Copies"
{root}
[[set]]
card = "ag-news"
folder = "news"
run_as = "{RUN_AS}"
partial = {{ train = "8 of many" }}
notes = ["Mirror: a note."]
counts = {{ train = 4, validation = 4, test = 4, dropped = 0 }}
splits = {{ train = "train", validation = 0.5, test = "test" }}
resplit = "validation is half of train"
[set.files]
train = [{{ path = "train.parquet", sha256 = "{train}", rows = 8 }}]
test = [{{ path = "test.parquet", sha256 = "{test}", rows = 4 }}]
"""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder / "mirror.toml").write_text(_manifest(folder))
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def test_results_on_a_mirror_never_go_by_the_plain_name(used: Path) -> None:
    card = find_card("ag-news")
    assert state(card) == "mirrored"
    assert card.run_name == RUN_AS
    data = load_text("ag-news", max_length=8)
    assert (len(data.train), len(data.validation), len(data.test())) == (4, 4, 4)
    found = data_used(data)
    assert found.name == RUN_AS
    assert found.partial
    assert "a local mirror; train: 8 of many; validation is half of train" in found.note
    assert found.hash == data_hash("ag-news", max_length=8)


def test_the_identity_is_that_of_the_mirror_s_files(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored = data_hash("ag-news", max_length=8)
    monkeypatch.setenv(VARIABLE, "")
    assert state(find_card("ag-news")) == "unverified"
    assert data_hash("ag-news", max_length=8) != mirrored
    monkeypatch.setenv(VARIABLE, str(used))
    path = used / "news/test.parquet"
    pq.write_table(pa.table({"text": ["other"] * 4, "label": [*range(4)]}), path)
    (used / "mirror.toml").write_text(_manifest(used))
    assert data_hash("ag-news", max_length=8) != mirrored


def test_the_folder_s_place_is_no_part_of_the_identity(
    used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = data_hash("ag-news", max_length=8)
    used.rename(tmp_path / "elsewhere")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    assert data_hash("ag-news", max_length=8) == known
    assert len(load_text("ag-news", max_length=8).train) == 4


@pytest.mark.parametrize("root", ['root = "../copies"', 'root = "$SOME_ROOT"'])
def test_a_manifest_may_lie_elsewhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    (tmp_path / "manifests").mkdir()
    path = tmp_path / "manifests" / "mine.toml"
    path.write_text(_manifest(folder, root=root))
    monkeypatch.setenv("SOME_ROOT", str(folder))
    monkeypatch.setenv(VARIABLE, str(path))
    assert len(load_text("ag-news", max_length=8).train) == 4
    monkeypatch.delenv("SOME_ROOT")
    if "$" in root:
        with pytest.raises(
            DataError, match=r"mine\.toml: root: '\$SOME_ROOT' names an environment"
        ):
            find_card("ag-news")


def test_sets_that_a_mirror_lacks_are_as_they_were(used: Path) -> None:
    assert state(find_card("snli")) == "unverified"
    assert find_card("r8") is DATASETS.get("r8")


def test_the_option_is_the_variable(
    used: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert app.run(["fetch", "ag-news", "--data", str(used)]) == 0
    assert os.environ[VARIABLE] == str(used)
    assert capsys.readouterr().out == f"ag-news: here and intact, runs as {RUN_AS}\n"
    assert app.run(["list", "datasets", "--json"]) == 0
    assert f'"role": "runs as {RUN_AS}"' in capsys.readouterr().out


def test_plan_says_what_is_unknown_and_what_runs_under_another_name(
    used: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CHECKOUT / "benchmarks/suites/smoke.toml").read_text().partition("\n# The second")[0]
    suite = tmp_path / "both.toml"
    suite.write_text(text.replace('["rotten-tomatoes"]', '["ag-news", "snli"]'))
    assert app.run(["plan", str(suite)]) == 0
    out = capsys.readouterr().out
    assert f"ag-news runs as {RUN_AS}" in out
    assert "to fetch first: snli (snli: size unknown): `frugalbench fetch snli`" in out
    assert "not in the estimate, since their rows are not known: snli" in out


@pytest.mark.parametrize("command", ["list", "fetch", "plan", "run", "bench", "report", "check"])
def test_a_folder_without_manifest_is_told(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [] if command in {"list", "fetch"} else ["smoke"]
    assert app.run([command, *arguments, "--data", str(folder)]) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"frugalbench: {folder} holds no mirror.toml")
    assert "docs/adding.md" in err


def test_no_folder_at_all_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["list", "--data", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder or manifest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('card = "ag-news"', 'card = "agnews"', "set.0.card: unknown card 'agnews'; did you mean"),
        ('card = "ag-news"', 'card = "r8"', "'r8' is no hub set"),
        (RUN_AS, "ag-news", "run_as: must say that it is a mirror"),
        ('resplit = "validation is half of train"', "", "resplit: say what"),
        ("rows = 8", "rows = 0", "set.0.files.train.0.rows"),
        ('folder = "news"', 'folder = "../news"', "relative path inside its folder"),
        ("counts", "count", "set.0.counts: Field required"),
        ('title = "Copies"', "title = ", "is not valid TOML"),
    ],
)
def test_a_wrong_manifest_is_told_file_and_key(folder: Path, old: str, new: str, said: str) -> None:
    path = folder / "mirror.toml"
    path.write_text(_manifest(folder, (old, new)))
    with pytest.raises(InvalidFileError) as caught:
        read_manifest(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_rule_that_names_an_absent_split_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _manifest(folder, ('validation = 0.5, test = "test"', 'validation = 0.5, test = "tst"'))
    (folder / "mirror.toml").write_text(text)
    monkeypatch.setenv(VARIABLE, str(folder))
    with pytest.raises(
        InvalidFileError, match=r"set 'ag-news': .*splits\.test: unknown part 'tst'"
    ):
        find_card("ag-news")


def test_a_checksum_that_differs_is_told(used: Path) -> None:
    path = used / "news/train.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    for read in (data_path, fetch):
        with pytest.raises(DataError) as caught:
            read(find_card("ag-news"))
        assert f"{path} was altered: its sha256 is {sha256_of(path)}" in str(caught.value)
        assert "the manifest says" in str(caught.value)
    path.unlink()
    assert state(find_card("ag-news")) == "needs download"
    with pytest.raises(DataError, match=r"train\.parquet is missing in .*correct the mirror"):
        data_path(find_card("ag-news"))


def test_counts_that_differ_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mirror.toml").write_text(_manifest(folder, ("train = 4,", "train = 5,")))
    monkeypatch.setenv(VARIABLE, str(folder))
    with pytest.raises(DataError, match=r"8 of many\)': its splits have .* the manifest's counts"):
        load_text("ag-news", max_length=8)


# ---- the mirror of real rows, where there is one


REAL_COUNTS = {
    "ag-news": ("train 5,000 of 120,000", [4499, 500, 7600]),
    "dbpedia-14": ("sample of 10,000 without titles", [4500, 500, 5000]),
    "imdb": ("test 24,996 of 25,000", [22373, 2488, 24996]),
    "snli": ("trained on 90 % of the validation split", [8857, 985, 9824]),
}
REAL_TEST = {
    "ag-news": [1900] * 4,
    "imdb": [12500, 12496],
    "snli": [3368, 3219, 3237],
}


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = os.environ.get(ROOT) or CHECKOUT.parent / "shared" / "data"
    if not (Path(chosen) / "snli").is_dir():
        pytest.skip(f"the mirror of real rows is not here: set {ROOT} to its folder")
    monkeypatch.setenv(ROOT, str(chosen))
    monkeypatch.setenv(VARIABLE, str(REAL))


def test_the_committed_manifest_is_valid() -> None:
    manifest = read_manifest(REAL)
    entries = {entry.card: entry for entry in manifest.sets}
    # of images there is `test_data_images_real`
    assert set(entries) == {*REAL_COUNTS, "cifar-10"}
    for entry in (entries[name] for name in REAL_COUNTS):
        assert entry.run_as == f"{entry.card} (mirror: {REAL_COUNTS[entry.card][0]})"
        assert list(entry.counts.model_dump().values())[:3] == REAL_COUNTS[entry.card][1]


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(REAL_COUNTS))
def test_real_rows_have_their_counts(name: str, real: None) -> None:
    card = find_card(name)
    assert state(card) == "mirrored"
    rows = read_rows(card, data_path(card))
    splits = splits_of(card, rows)
    assert [len(i) for i in (splits.train, splits.validation, splits.test)] == REAL_COUNTS[name][1]
    assert rows.n_unlabelled == 0
    found = np.bincount([rows.labels[row] for row in splits.test]).tolist()
    assert found == REAL_TEST.get(name, found)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "imdb" else ()) for n in REAL_COUNTS]
)
def test_real_rows_load(name: str, real: None) -> None:
    data = load_text(name, max_length=find_card(name).max_length or 0)
    splits = (data.train, data.validation, data.test())
    assert [len(split) for split in splits] == REAL_COUNTS[name][1]
    assert data.partial
    assert all(set(split.labels) == set(range(len(data.classes))) for split in splits)


@pytest.mark.data
def test_snli_is_carved_from_its_validation_split(real: None) -> None:
    card = find_card("snli")
    rows = read_rows(card, data_path(card))
    data = load_text("snli", max_length=64)
    validation = rows.parts["validation"]
    assert set(data.train.row_ids) | set(data.validation.row_ids) <= set(validation)
    assert set(data.test().row_ids) == set(rows.parts["test"])
    assert "carved from the official validation split" in data.note


@pytest.mark.data
def test_dbpedia_without_titles_is_its_content_alone(real: None) -> None:
    card = find_card("dbpedia-14")
    texts = [text for (text,) in read_rows(card, data_path(card)).texts]
    assert not any(text.startswith(" ") for text in texts)
    assert all(texts)
