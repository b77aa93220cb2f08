"""A small checkout of its own, and records made by hand: no model is built here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import paths
from benchmarks.meters.interface import Measurement
from benchmarks.planning.expand import expand
from benchmarks.planning.plan import Measurable, wanted_records
from benchmarks.planning.suite import load_suite
from benchmarks.records import Failure, Record, Value
from benchmarks.running.recording import make_record
from benchmarks.running.store import RecordStore
from benchmarks.statistics.intervals import log_ratio_t, wilson

SUITE = """
schema = 1
title = "tiny"
seeds = [0, 1, 2]
[options.latency]
batch_sizes = [1, 32]
[[sweep]]
name = "main"
datasets = ["r8"]
max_length = 16
meters = ["accuracy", "flops", "memory", "latency"]
baseline = "dense"
params = { depth = 1, d_model = 16, n_heads = 2 }
[[sweep.variants]]
label = "dense"
model = "dense"
[[sweep.variants]]
label = "budget"
model = "budgetformer"
[[sweep.variants]]
label = "no-attention"
model = "no-attention"
[[sweep]]
name = "depths"
datasets = ["r8"]
max_length = 16
stage = 3
seeds = [0]
meters = ["flops"]
params = { d_model = 16, n_heads = 2 }
axes = { depth = [1, 2] }
[[sweep.variants]]
label = "dense"
model = "dense"
"""

CLAIM = """
schema = 1
id = "{id}"
title = "{id}"
statement = "a statement"
suite = "tiny"
sweep = "main"
baseline = "dense"
candidates = ["budget"]
datasets = ["r8"]
{rest}
[source]
paper = "a paper"
section = "a table"
certainty = "sure"
[threshold]
direction = "{direction}"
value = {value}
why = "a reason"
"""

CLAIMS = {
    "accuracy": (
        'quantity = "accuracy_difference"\ndecided_by = "paired_t"', "at least", -0.01,
    ),
    "macs": ('quantity = "macs_ratio"\ndecided_by = "paired_log_ratio_t"', "at most", 0.979),
    "speed": ('quantity = "speedup"\nbatch_size = 32\ndecided_by = "log_ratio_t"', "above", 1.0),
}  # fmt: skip

N = 1000
DENSE = (0.950, 0.952, 0.949)
MODELS = ("dense", "budget", "no-attention")


@dataclass
class World:
    """A checkout with one suite and three claims, and records to be written into it."""

    root: Path
    runs: Path
    accuracy: dict[str, Sequence[float]] = field(
        default_factory=lambda: {
            "dense": DENSE,
            "budget": (0.951, 0.952, 0.950),
            "no-attention": (0.900, 0.903, 0.898),
        }
    )
    macs: dict[str, Sequence[float]] = field(
        default_factory=lambda: {
            "dense": (1e6,) * 3,
            "budget": (0.80e6, 0.82e6, 0.81e6),
            "no-attention": (0.5e6,) * 3,
        }
    )
    logs: dict[str, Sequence[float]] = field(
        default_factory=lambda: {
            "budget": (0.10, 0.12, 0.11),
            "no-attention": (0.5, 0.52, 0.51),
        }
    )
    parameters: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODELS, 4321.0))
    at_k: float = 1000.5

    @property
    def store(self) -> RecordStore:
        return RecordStore(self.runs / "records")

    @property
    def wanted(self) -> list[Measurable]:
        return list(wanted_records(expand(load_suite("tiny"))))

    def find(self, label: str, seed: int, meter: str) -> Measurable:
        return next(
            m
            for m in self.wanted
            if (m.point.label, m.point.seed, m.meter.name) == (label, seed, meter)
        )

    def fill(self, *, without: Sequence[tuple[str, str]] = ()) -> None:
        """Writes every record but those of (label, meter) in `without`."""
        for wanted in self.wanted:
            if (wanted.point.label, wanted.meter.name) not in without:
                self.write(wanted)

    def write(self, wanted: Measurable, **extra: Any) -> Record:
        label, seed = wanted.point.label, wanted.point.seed
        values, arrays = getattr(self, f"_{wanted.meter.name}")(label, seed)
        record = make_record(wanted, Measurement(values=values), duration_s=0.1)
        record = record.model_copy(update=extra)
        self.store.write(record, arrays)
        return record

    def fail(self, wanted: Measurable) -> None:
        failure = Failure(type="ValueError", message="it broke", traceback="...")
        self.store.write(make_record(wanted, failure, duration_s=0.1))

    def _accuracy(self, label: str, seed: int) -> tuple[list[Value], pd.DataFrame]:
        right = round(self.accuracy[label][seed] * N)
        interval = wilson(right, N)
        value = Value(
            name="accuracy", value=right / N, unit="fraction", n=N, low=interval.low,
            high=interval.high, method="wilson", confidence=0.95,
        )  # fmt: skip
        answers = [1] * right + [0] * (N - right)
        frame = pd.DataFrame({"row_id": range(N), "label": [1] * N, "prediction": answers})
        return [value], frame.sample(frac=1, random_state=seed)

    def _flops(self, label: str, seed: int) -> tuple[list[Value], None]:
        macs = self.macs[label][seed]
        return [
            Value(name="macs", value=9e9, unit="MACs", context={"stat": "p95"}),
            Value(name="macs", value=macs, unit="MACs", context={"stat": "mean"}),
            Value(
                name="macs_attention_core", value=macs / 4, unit="MACs", context={"stat": "mean"}
            ),
            Value(name="macs_at_k", value=500.25, unit="MACs", context={"k": 1}),
            Value(name="macs_at_k", value=self.at_k, unit="MACs", context={"k": 2}),
        ], None

    def _memory(self, label: str, _seed: int) -> tuple[list[Value], None]:
        return [Value(name="parameters", value=self.parameters[label], unit="count")], None

    def _latency(self, label: str, _seed: int) -> tuple[list[Value], None]:
        interval = log_ratio_t(self.logs[label])
        numbers: Mapping[str, Any] = {
            "low": interval.low, "high": interval.high, "method": interval.method,
            "confidence": interval.confidence, "n": interval.n,
        }  # fmt: skip
        large = {"batch_size": 32}
        return [
            Value(name="speedup", value=0.5, unit="ratio", context={"batch_size": 1}),
            Value(name="speedup", value=interval.estimate, unit="ratio", context=large, **numbers),
            Value(name="promised_speedup", value=1.25, unit="ratio", context=large),
        ], None


@pytest.fixture
def world(tmp_path: Path, own_runs: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    root = tmp_path / "checkout"
    for kind in ("suites", "claims"):
        (root / "benchmarks" / kind).mkdir(parents=True)
    (root / "pyproject.toml").touch()
    shutil.copytree(paths.CHECKOUT / "datasets", root / "datasets")
    (root / "benchmarks/suites/tiny.toml").write_text(SUITE)
    for name, (rest, direction, value) in CLAIMS.items():
        text = CLAIM.format(id=name, rest=rest, direction=direction, value=value)
        (root / f"benchmarks/claims/{name}.toml").write_text(text)
    monkeypatch.setattr(paths, "CHECKOUT", root)
    return World(root, own_runs)
