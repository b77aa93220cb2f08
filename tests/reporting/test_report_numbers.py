"""Every number of the cost and the time table, worked out anew from the records it must come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.reporting.sections.tables import cost_table
from benchmarks.reporting.sections.times import time_table
from benchmarks.reporting.view import View
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.records import Record

FACTORS = {"macs": 1.0, "macs_attention": 0.9, "macs_attention_core": 0.7}
Found = dict[tuple[str, str, int], "Record"]


class Uneven(RecordStore):
    """Gives the three counts of an adaptive model savings of their own, and keeps what it wrote.

    Without that, a column that showed another column's number would look right.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.kept: Found = {}

    def write(self, record: Record, arrays: Any = None) -> Any:
        if record.meter == "flops" and record.label == "budget-low":
            values = [
                value.model_copy(update={"value": value.value * FACTORS.get(value.name, 1.0)})
                for value in record.values
            ]
            record = record.model_copy(update={"values": values})
        if record.data and record.data.name == "r8" and "train_fraction" not in record.point:
            self.kept.setdefault((record.meter, record.label, record.seed), record)
        return super().write(record, arrays)


@pytest.fixture
def written(made_up: Any, tuning: Any) -> tuple[View, Found]:
    store = Uneven(made_up.runs / "records")
    made_up.write(tuning(keep=lambda w: w.planned.sweep == "main"), store=store)
    return View(made_up.results()), store.kept


def cells(markdown: str, label: str) -> dict[str, str]:
    """One row of a Markdown table, by the column's title."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    split = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    [row] = [row for row in split if row[0] == label]
    return dict(zip(split[0], row, strict=True))


def number(row: dict[str, str], title: str) -> list[float]:
    """The numbers in the one cell whose column's title begins so."""
    [cell] = [cell for name, cell in row.items() if name.startswith(title)]
    return [float(part.replace(",", "")) for part in re.findall(r"[\d.,]+", cell)]


def look_up(found: Found, meter: str, label: str, seed: int, name: str, **context: Any) -> float:
    [value] = [
        value.value
        for value in found[meter, label, seed].values
        if value.name == name and value.context == context
    ]
    return value


def test_cost_columns_are_means_over_seeds_of_their_own_count(written: tuple[View, Found]) -> None:
    view, found = written
    row = cells(cost_table(view, view.main["r8"]), "budget-low")

    def over_seeds(name: str, label: str = "budget-low", stat: str = "mean") -> list[float]:
        return [look_up(found, "flops", label, seed, name, stat=stat) for seed in (0, 1, 2)]

    for title, stat in (("MACs per input", "mean"), ("p95", "p95")):
        mean = sum(over_seeds("macs", stat=stat)) / 3
        assert number(row, title) == [pytest.approx(mean / 1e6, rel=0.005)]
    shown = []
    for title, name in (
        ("cut, whole", "macs"),
        ("cut, attention with", "macs_attention"),
        ("cut, attention core", "macs_attention_core"),
    ):
        pairs = zip(over_seeds(name), over_seeds(name, "dense"), strict=True)
        cut = sum(1 - ours / theirs for ours, theirs in pairs) / 3
        assert number(row, title) == [pytest.approx(100 * cut, abs=0.051)]
        shown += number(row, title)
    assert len({*shown}) == 3, "the three cuts must differ, or this test cannot tell them apart"


def test_time_columns_are_those_of_the_timed_seed(written: tuple[View, Found]) -> None:
    view, found = written
    row = cells(time_table(view, view.main["r8"]), "budget-low")
    ours, theirs = (
        look_up(found, "flops", label, 0, "macs", stat="mean") for label in ("budget-low", "dense")
    )
    assert theirs > ours
    assert number(row, "speed-up promised") == [pytest.approx(theirs / ours, abs=0.0051)]
    for size in (1, 32):
        [value] = [
            value
            for value in found["latency", "budget-low", 0].values
            if value.name == "speedup" and value.context == {"batch_size": size}
        ]
        wanted = [value.value, value.low, value.high]
        assert number(row, f"realised, batch {size} ") == pytest.approx(wanted, abs=0.0051)
    seconds = look_up(found, "latency", "budget-low", 0, "latency", batch_size=32, who="candidate")
    assert number(row, "latency, batch 32 (ms)") == [pytest.approx(1000 * seconds, rel=0.005)]
    held = look_up(found, "memory", "budget-low", 0, "peak_memory", batch_size=32)
    assert number(row, "peak memory, batch 32 (MiB)") == [
        pytest.approx(held / 1024 / 1024, rel=0.005)
    ]
    joules = look_up(found, "carbon", "budget-low", 0, "energy", per_inputs=1000)
    assert number(row, "energy per 1000 inputs") == [pytest.approx(joules, rel=0.005)]
