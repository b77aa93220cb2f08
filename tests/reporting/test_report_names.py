"""Sets of the hub and of a mirror: their names, their counts, and where pretrained weights come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.data.weights import find_weights
from benchmarks.reporting.page import page
from benchmarks.reporting.sections.overview import setting
from benchmarks.reporting.sections.provenance import stand_ins
from benchmarks.reporting.view import View

if TYPE_CHECKING:
    from pathlib import Path

MIRROR = """
schema = 1
title = "A mirror"
[[set]]
card = "ag-news"
folder = "ag"
run_as = "ag-news (mirror: a tenth)"
partial = { train = "a tenth" }
counts = { train = 90, validation = 10, test = 7600, dropped = 0 }
[set.files]
train = [{ path = "a.parquet", sha256 = "HASH", rows = 100 }]
test = [{ path = "b.parquet", sha256 = "HASH", rows = 7600 }]
""".replace("HASH", "0" * 64)


def on_ag_news(world: Any) -> View:
    text = world.path.read_text(encoding="utf-8").replace('"rotten-tomatoes"]', '"ag-news"]')
    world.path.write_text(text, encoding="utf-8")
    return View(world.results())


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror in use, of which only the manifest is looked at."""
    (tmp_path / "mirror.toml").write_text(MIRROR, encoding="utf-8")
    monkeypatch.setenv("FRUGALBENCH_DATA", str(tmp_path))


def test_counts_that_no_file_gives_are_unknown(made_up: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("FRUGALBENCH_DATA", raising=False)
    [line] = [x for x in setting(on_ag_news(made_up)).splitlines() if x.startswith("| ag-news")]
    assert [cell.strip() for cell in line.split("|")[4:6]] == ["unknown", "not yet"]


def test_a_mirrors_set_is_never_called_by_the_plain_name(made_up: Any, mirror: None) -> None:
    text = page(on_ag_news(made_up), [], [])
    assert "## Results on ag-news (mirror: a tenth)" in text
    assert "90 / 10 / 7,600" in text
    assert not re.search(r"ag-news(?! \(mirror)", text)


def test_the_records_say_what_they_were_measured_on(made_up: Any, tuning: Any) -> None:
    made_up.write(
        tuning(
            data_name="r8 (mirror: half)",
            keep=lambda w: w.point.dataset == "r8" and w.planned.sweep == "main",
        )
    )
    text = page(View(made_up.results()), [], [])
    assert "**On r8 (mirror: half):**" in text
    assert "## Results on r8 (mirror: half)" in text
    assert "yardstick: TF-IDF* | *97" not in re.sub(" +", " ", text)
    assert not re.search(r"\br8(?! \(mirror)", text)


def test_pretrained_weights_say_where_they_come_from(made_up: Any) -> None:
    text = made_up.path.read_text(encoding="utf-8")
    head = text.partition("[[sweep]]")[0]
    made_up.path.write_text(
        head
        + """[[sweep]]
name = "main"
datasets = ["r8"]
max_length = 64
meters = ["accuracy"]
variants = [{ label = "bert", model = "bert", params = { depth = 3, pretrained = "minilm-l3" } }]
""",
        encoding="utf-8",
    )
    told = stand_ins(View(made_up.results()))
    assert "Pretrained weights `minilm-l3`: " in told
    for part in find_weights("minilm-l3").provenance:
        assert part.rstrip(".") in told
