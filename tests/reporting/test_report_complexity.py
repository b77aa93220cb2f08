"""The report's section on the complexity of inputs: numbers joined by row id, and no texts committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.catalog import DATASETS
from benchmarks.planning.expand import expand
from benchmarks.planning.plan import Measurable, wanted_records
from benchmarks.planning.suite import parse_suite
from benchmarks.records import DataUsed, Environment, Record, Value
from benchmarks.reporting.complexity import baseline_loss, correlations, measures_of
from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.complexity import draw
from benchmarks.reporting.sections import complexity as section
from benchmarks.reporting.sections.complexity import complexity
from benchmarks.reporting.view import View
from benchmarks.results import collect
from benchmarks.running.store import RecordStore
from benchmarks.toml_files import read_toml

SUITE = """
schema = 1
title = "Made-up pairs"
seeds = [0, 1, 2]
[[sweep]]
name = "main"
datasets = ["sts-b", "mqar"]
max_length = 64
meters = ["accuracy", "complexity"]
baseline = "dense"
params = { depth = 2, d_model = 64, n_heads = 8 }
variants = [
    { label = "dense", model = "dense" },
    { label = "budget", model = "budgetformer" },
    { label = "random-trained", model = "random-trained", source = "budget" },
]
"""
N = 200
TEXTS = ("A very telling sentence.", "Another one | with a bar.")


def arrays_of(wanted: Measurable) -> pd.DataFrame:
    rng = np.random.default_rng(wanted.point.seed)
    row = np.arange(N)
    if wanted.meter.name == "complexity":
        own = {"pairs": 8 + 4 * (row % 3)} if wanted.point.dataset == "mqar" else {}
        if wanted.point.dataset == "listops":
            own = {"depth": 2 + row % 2, "digits": 6 + 2 * (row // 2 % 2)}
        overlap = np.where(row == 7, np.nan, row / N)
        # rows in another order than the decisions': they must be joined by id
        frame = pd.DataFrame({"row_id": row, "length": 5 + row % 7, **own, "overlap": overlap})
        return frame.iloc[::-1]
    frame = pd.DataFrame({"row_id": row, "label": row % 3, "prediction": row % 3})
    frame["length"], frame["loss"] = 5 + row % 7, (N - row) / N
    if wanted.point.dataset == "listops":
        frame["prediction"] += row % 2  # right at depth 2 alone
    if wanted.point.label != "dense":
        follows = wanted.point.label == "budget"
        frame["s_0"] = row / N if follows else rng.random(N)
        frame["s_1"] = 0.5  # constant
    return frame


def record_of(wanted: Measurable) -> Record:
    point = wanted.point
    info: dict[str, Any] = {}
    if wanted.meter.name == "complexity":
        info = {"unmeasured": {"disagreement": "no ratings | here"}}
    return Record(
        meter=wanted.meter.name,
        kind=wanted.meter.kind,
        status="ok",
        point_id=point.point_id,
        group_id=point.group_id,
        label=point.label,
        seed=point.seed,
        point=point.declared(),
        values=[Value(name="accuracy", value=1.0, unit="fraction", n=N)],
        info=info,
        data=DataUsed(name=point.dataset, split="test", n=N, hash="0" * 64),
        key=wanted.key,
        environment=Environment(
            python="3.12", libraries={}, os="Linux", cpu="CPU", cores=2, memory_gib=8, threads=1
        ),
        created="2026-11-29T10:20:30+00:00",
        duration_s=1.0,
    )


def view_of(folder: Path, keep: Callable[[Measurable], bool] = lambda _: True) -> View:
    path = folder / "suite.toml"
    path.write_text(SUITE, encoding="utf-8")
    suite = parse_suite(read_toml(path), path)
    store = RecordStore(folder / "runs" / "records")
    for wanted in wanted_records(expand(suite)):
        if keep(wanted):
            store.write(record_of(wanted), arrays_of(wanted))
    return View(collect(suite, runs=folder / "runs"))


@pytest.fixture
def view(tmp_path: Path) -> View:
    return view_of(tmp_path)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        section, "_texts", lambda _, row_ids: {row: f"low: {' / '.join(TEXTS)}" for row in row_ids}
    )


def test_one_record_serves_all_points_with_the_same_inputs(view: View) -> None:
    wanted = [m for m in wanted_records(view.results.expansion) if m.meter.name == "complexity"]
    assert sorted(m.point.dataset for m in wanted) == ["mqar", "sts-b"]
    assert not view.results.missing


def test_s_is_joined_by_row_id_and_correlated(view: View) -> None:
    _, budget, control = view.main["sts-b"]
    found = {c.measure: c for c in correlations(view, budget)}
    assert list(found) == ["length", "overlap", "loss"]
    assert found["overlap"].whole.estimate == pytest.approx(1)
    assert found["overlap"].n_inputs == N - 1
    assert found["overlap"].n_seeds == 3
    assert found["overlap"].layers == (pytest.approx(1), None)
    assert found["loss"].whole.estimate == pytest.approx(-1)
    assert found["length"].at_length is None
    chance = {c.measure: c for c in correlations(view, control)}["overlap"]
    assert abs(chance.whole.estimate) < 0.2
    assert chance.whole.low < chance.whole.estimate < chance.whole.high


def test_difficulty_is_the_baselines_mean_loss(view: View) -> None:
    dense, budget, _ = view.main["sts-b"]
    loss = baseline_loss(view, dense)
    assert loss is not None
    assert loss.loc[N - 1] == pytest.approx(1 / N)
    measures = measures_of(view, budget)
    assert measures is not None
    assert measures["loss"].equals(loss.reindex(measures.index))


@pytest.mark.usefixtures("texts")
def test_texts_stand_in_local_reports_only(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    to_commit = View(view.results, reference=True)
    local, committed = complexity(view), complexity(to_commit)
    assert TEXTS[0] in local
    assert TEXTS[1].replace("|", "\\|") in local
    assert TEXTS[0] not in committed
    assert "Texts are left out" in committed
    for text in (local, committed):
        assert "| easiest |      199 |" in text
        assert "| hardest |        0 |" in text
    allowed = DATASETS.get("sts-b").model_copy(update={"texts_may_be_shown": True})
    monkeypatch.setattr("benchmarks.reporting.view.find_card", lambda _: allowed)
    assert TEXTS[0] in complexity(View(view.results, reference=True))


def test_records_hold_numbers_only(view: View) -> None:
    for record in view.ok:
        frame = view.results.arrays(record)
        assert frame is not None
        assert all(kind.kind in "if" for kind in frame.dtypes)


@pytest.mark.usefixtures("texts")
def test_a_diagnostic_is_called_one_and_told_by_difficulty(view: View) -> None:
    text = complexity(view)
    _, part = text.split("### Complexity of inputs of mqar (diagnostic)")
    assert all(f" pairs {n} |" in part for n in (8, 12, 16))
    assert TEXTS[0] not in part  # no pair of texts
    assert "disagreement (no ratings | here)" in part


@pytest.mark.usefixtures("texts")
def test_both_dials_of_a_diagnostic_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SUITE", SUITE.replace("mqar", "listops"))
    text = complexity(view_of(tmp_path))
    _, part = text.split("### Complexity of inputs of listops (diagnostic)")
    assert all(f" depth {n} |" in part for n in (2, 3))
    assert all(f" digits {n} |" in part for n in (6, 8))
    assert all(f" depth {d}, digits {n} |" in part for d in (2, 3) for n in (6, 8))
    rows = [line.split("|")[2:-1] for line in part.splitlines() if line.startswith("| `dense`")]
    by_depth, by_digits, by_both = ([cell.strip() for cell in row] for row in rows)
    assert by_digits == ["50.0", "50.0"]
    assert by_depth == ["100.0", "0.0"]
    assert by_both == ["100.0", "100.0", "0.0", "0.0"]


def test_missing_records_are_said(tmp_path: Path) -> None:
    bare = view_of(tmp_path, keep=lambda m: m.meter.name == "accuracy")
    assert "missing: the complexity" in complexity(bare)
    assert isinstance(draw(bare), style.NotDrawn)


def test_nothing_is_said_where_nothing_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE.replace(', "complexity"', ""), encoding="utf-8")
    suite = parse_suite(read_toml(path), path)
    assert complexity(View(collect(suite, runs=tmp_path))) == ""


def test_figure_shows_every_measure(view: View) -> None:
    drawing = draw(view)
    assert isinstance(drawing, style.Drawing)
    panels = [ax for ax in drawing.figure.axes if ax.get_title() in {"sts-b", "mqar"}]
    assert panels[0].get_yticklabels()[0].get_text() == "length"
    assert len(style.svg(drawing.figure)) > 1000
