"""A tiny data set and suite, and an engine that needs no process of its own."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from benchmarks.catalog import DATASETS, ENGINES
from benchmarks.data.card import load_card
from benchmarks.planning.plan import PointTask, SampleTask
from benchmarks.records import Failure
from benchmarks.registry import Entry
from benchmarks.running.jobs import Outcome, run_point, run_sample

SUITE = """\
schema = 1
title = "Tiny"
seeds = [0]

[recipe]
epochs = 1
batch_size = 4

[[sweep]]
name = "main"
datasets = ["tiny"]
max_length = 8
meters = ["training", "accuracy", "flops"]
baseline = "dense"
params = { depth = 1, d_model = 16, n_heads = 4 }

[[sweep.variants]]
label = "dense"
model = "dense"

[[sweep.variants]]
label = "low"
model = "budgetformer"
params = { s_min = 0.1, s_max = 0.3 }

[[sweep.variants]]
label = "random"
model = "random-at-test"
source = "low"
"""

CARD = """\
schema = 1
name = "tiny"
title = "Tiny"
task = "single"
classes = ["a", "b"]
licence = {{ package = "MIT", data = "MIT" }}
reader = {{ format = "tsv", label = 0, text = [1] }}
splits = {{ train = "all", validation = 0.2, test = 0.2 }}
counts = {{ train = 12, validation = 4, test = 4, dropped = 0 }}

[source]
kind = "package"
package = "tiny"
version = "1"
file = "tiny-1-py3-none-any.whl"
sha256 = "{sha256}"
parts = [{{ name = "all", path = "all.tsv", rows = 20 }}]
"""

MakeData = Callable[[Sequence[str]], Path]
WriteSuite = Callable[..., str]


@pytest.fixture
def make_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeData:
    """Puts 20 lines "label<tab>text" into a package of the cache; returns the package."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(cache))
    DATASETS.names()

    def make(lines: Sequence[str]) -> Path:
        package = cache / "packages" / "tiny-1-py3-none-any.whl"
        package.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr(zipfile.ZipInfo("all.tsv"), "".join(f"{line}\n" for line in lines))
        (tmp_path / "splits").mkdir(exist_ok=True)
        row_ids = {"train": "0-11", "validation": "12-15", "test": "16-19", "dropped": ""}
        (tmp_path / "splits" / "tiny.json").write_text(json.dumps(row_ids))
        path = tmp_path / "tiny.toml"
        path.write_text(CARD.format(sha256=hashlib.sha256(package.read_bytes()).hexdigest()))
        entry = Entry("tiny", partial(load_card, path), "tiny.toml", path)
        monkeypatch.setitem(DATASETS._entries, "tiny", entry)
        monkeypatch.setitem(DATASETS._values, "tiny", load_card(path))
        return package

    return make


@pytest.fixture
def tiny(make_data: MakeData) -> Path:
    """A data set in which the first word tells the label; its package."""
    return make_data([f"{'ab'[i % 2]}\t{('red', 'blue')[i % 2]} thing {i % 3}" for i in range(20)])


@pytest.fixture
def write_suite(tmp_path: Path) -> WriteSuite:
    """Writes `SUITE` with changes ("old", "new"), and returns the file's path."""

    def write(*changes: tuple[str, str], name: str = "mine.toml") -> str:
        text = SUITE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


class Inline:
    """Runs tasks in this process, one after the other."""

    def __init__(self, runs: Path, jobs: int | None = None) -> None:
        del jobs
        self.runs = runs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run_beside(
        self,
        tasks: Sequence[PointTask],
        progress: Callable[..., None],
        failed: Mapping[str, Failure],
    ) -> Iterator[tuple[PointTask, Outcome]]:
        del failed
        for task in tasks:
            yield task, run_point(task, self.runs, partial(progress, task))

    def run_alone(
        self, tasks: Sequence[SampleTask], progress: Callable[..., None]
    ) -> Iterator[tuple[SampleTask, Outcome]]:
        for task in tasks:
            yield task, run_sample(task, self.runs, partial(progress, task))


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that make `run` use an engine without processes."""
    from benchmarks.training import prepare

    prepare._load.cache_clear()
    ENGINES.names()
    entry: Entry[Any] = Entry("inline", lambda: Inline, "a test", Inline)
    monkeypatch.setitem(ENGINES._entries, "inline", entry)
    return ["--engine", "inline"]
