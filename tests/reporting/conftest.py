"""Made-up but plausible records of a whole suite, as a run would leave them on disk."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.catalog import DATASETS, MODELS
from benchmarks.planning.expand import expand
from benchmarks.planning.plan import Measurable, wanted_records
from benchmarks.planning.suite import Suite, parse_suite
from benchmarks.records import DataUsed, Environment, Failure, Record, Value
from benchmarks.reporting.figures.gallery import Rendered, render_all
from benchmarks.reporting.view import View
from benchmarks.results import ResultSet, collect
from benchmarks.running.store import RecordStore

SUITE = (Path(__file__).parent / "made-up.toml").read_text(encoding="utf-8")
VALIDATION = (Path(__file__).parent / "validation.toml").read_text(encoding="utf-8")

ACCURACY = {
    ("r8", "dense"): 0.954,
    ("r8", "budget-low"): 0.949,
    ("r8", "budget-high"): 0.956,
    ("r8", "random-trained"): 0.944,
    ("r8", "random-at-test"): 0.861,
    ("r8", "fewer-heads"): 0.951,
    ("r8", "no-attention"): 0.953,
    ("rotten-tomatoes", "dense"): 0.719,
    ("rotten-tomatoes", "budget-low"): 0.708,
    ("rotten-tomatoes", "budget-high"): 0.716,
    ("rotten-tomatoes", "random-trained"): 0.702,
    ("rotten-tomatoes", "random-at-test"): 0.655,
    ("rotten-tomatoes", "fewer-heads"): 0.713,
    ("rotten-tomatoes", "no-attention"): 0.671,
}
MEAN_S = {"budget-high": 0.82}
HEADED = {"budgetformer", "random-trained", "random-at-test"}
N_TEST = {
    "r8": 2189, "rotten-tomatoes": 1706, "random-tokens": 64, "cifar-10": 10_000, "random-images": 32,
}  # fmt: skip
WRITTEN = "2026-11-29T10:20:30+00:00"


@dataclass
class Tuning:
    """What a test changes of the made-up numbers."""

    accuracy: dict[tuple[str, str], float] = field(default_factory=dict)
    energy_source: str = "constant"
    spread: float = 0.003
    validation: float = 0.95
    share: float | None = None
    promise: float | None = None
    peak: dict[str, float] = field(default_factory=dict)
    data_name: str = ""
    epochs: int = 3
    batch_sizes: tuple[int, ...] = (1, 32)
    fail: Callable[[Measurable], bool] = lambda _: False
    keep: Callable[[Measurable], bool] = lambda _: True
    warn: Callable[[Measurable], list[str]] = lambda _: []
    makers: dict[str, Callable[..., Any]] = field(default_factory=dict)


class MadeUp:
    """A suite file and its records below one folder.

    Args:
        root: folder of the suite file (`suite.toml`) and of the working state (`runs/`).
        text: the suite file.
    """

    def __init__(self, root: Path, text: str = SUITE) -> None:
        self.path = root / "suite.toml"
        self.runs = root / "runs"
        self.path.write_text(text, encoding="utf-8")

    @property
    def suite(self) -> Suite:
        return parse_suite(tomllib.loads(self.path.read_text(encoding="utf-8")), self.path)

    def write(self, tuning: Tuning | None = None, store: RecordStore | None = None) -> MadeUp:
        """Writes every wanted record that the tuning keeps."""
        tuning = tuning or Tuning()
        store = store or RecordStore(self.runs / "records")
        for wanted in wanted_records(expand(self.suite)):
            if tuning.keep(wanted):
                store.write(*made_up_record(wanted, tuning))
        return self

    def results(self) -> ResultSet:
        return collect(self.suite, runs=self.runs)


def made_up_record(wanted: Measurable, tuning: Tuning) -> tuple[Record, pd.DataFrame | None]:
    point, baseline = wanted.point, wanted.baseline
    config = _config(point)
    frame = None
    contents: dict[str, Any] = {"values": [], "series": {}, "info": {}}
    if tuning.fail(wanted):
        contents["failure"] = Failure(
            type="RuntimeError", message="made to fail | here", traceback="File models/x.py, line 1"
        )
    else:
        makers = {
            "training": _training, "accuracy": _accuracy, "flops": _flops,
            "memory": _memory, "latency": _latency, "carbon": _carbon,
            "complexity": _complexity,
        }  # fmt: skip
        makers |= tuning.makers
        values, series, info, frame = makers[wanted.meter.name](wanted, config, tuning)
        contents = {"values": values, "series": series, "info": info}
    generated = point.dataset.startswith("random-")
    record = Record(
        meter=wanted.meter.name,
        kind=wanted.meter.kind,
        status="failed" if "failure" in contents else "ok",
        point_id=point.point_id,
        group_id=point.group_id,
        label=point.label,
        seed=point.seed,
        point=point.declared(),
        baseline_point_id=baseline.point_id if baseline else None,
        baseline_label=baseline.label if baseline else None,
        baseline=baseline.declared() if baseline else None,
        resolved=config,
        weights_seed=point.seed if point.trained else None,
        data=DataUsed(
            name=tuning.data_name or point.dataset,
            split="generated" if generated else "test",
            n=N_TEST[point.dataset],
            hash="0" * 64,
            note="" if generated else _note(point),
        ),
        warnings=tuning.warn(wanted),
        key=wanted.key,
        environment=Environment(
            python="3.12.3",
            libraries={"torch": "2.13.0"},
            os="Linux",
            cpu="Made-up CPU",
            cores=2,
            memory_gib=7.7,
            threads=1,
        ),
        created=WRITTEN,
        duration_s=1.5,
        **contents,
    )
    return record, frame


def _note(point: Any) -> str:
    part = [f"{point.train_fraction:g} of the training rows"] if point.train_fraction < 1 else []
    if MODELS.get(point.model).inputs == "image":
        return "; ".join(part)
    return "; ".join([*part, f"700 of {N_TEST[point.dataset]} inputs cut to 64 tokens"])


def _config(point: Any) -> dict[str, Any]:
    from dataclasses import asdict

    config = MODELS.get(point.model)(**{**point.params, "max_length": point.max_length})
    values = asdict(config)
    if point.model == "fewer-heads":
        values["heads_per_layer"] = [2, 1]
    return values


def _rng(wanted: Measurable, *extra: int) -> np.random.Generator:
    return np.random.default_rng([int(wanted.point.group_id[:8], 16), wanted.point.seed, *extra])


def _share_of_heads(wanted: Measurable, config: dict[str, Any]) -> float:
    if wanted.point.model in HEADED:
        if config.get("fixed_k"):
            return float(config["fixed_k"] / config["n_heads"])
        shift = 0.05 * (1 - wanted.point.train_fraction) - 0.02 * (config["depth"] - 2)
        return MEAN_S.get(wanted.point.label, 0.27) + shift
    if wanted.point.model == "fewer-heads":
        return 1.5 / config["n_heads"]
    return 0.0 if wanted.point.model == "no-attention" else 1.0


def _cost(config: dict[str, Any], length: int, share: float) -> dict[str, float]:
    d, depth = config["d_model"], config["depth"]
    core = depth * 2 * length * length * d * share
    projections = depth * 4 * length * d * d * share
    rest = depth * 8 * length * d * d
    return {
        "macs": core + projections + rest,
        "macs_attention": core + projections,
        "macs_attention_core": core,
    }


def _frame(wanted: Measurable, config: dict[str, Any]) -> pd.DataFrame:
    rng = _rng(wanted, 1)
    n = N_TEST[wanted.point.dataset]
    limit = wanted.point.max_length
    lengths = np.clip(rng.gamma(2.0, limit / 3, n).astype(int) + 2, 2, limit)
    frame = pd.DataFrame({"row_id": np.arange(n), "length": lengths})
    if wanted.point.model in HEADED:
        share = _share_of_heads(wanted, config)
        for layer in range(config["depth"]):
            s = np.clip(
                rng.normal(share - 0.03 * layer + 0.05 * lengths / limit, 0.05, n), 0.02, 0.98
            )
            frame[f"s_{layer}"] = s.astype(np.float32)
            k = np.maximum(1, np.floor(s * config["n_heads"] + 1e-6)).astype(np.int8)
            frame[f"k_{layer}"] = k
    return frame


def _accuracy(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    point = wanted.point
    key = (point.dataset, point.label)
    target = {**ACCURACY, **tuning.accuracy}[key]
    target -= 0.04 * (1 - point.train_fraction) - 0.002 * (config["depth"] - 2)
    rng = _rng(wanted, 2)
    target += rng.normal(0, tuning.spread) if tuning.spread else 0.0
    frame = _frame(wanted, config)
    n, classes = len(frame), len(DATASETS.get(point.dataset).classes)
    right = np.arange(n) < round(target * n)
    rng.shuffle(right)
    labels = np.arange(n) % classes
    frame.insert(1, "label", labels)
    frame.insert(2, "prediction", np.where(right, labels, (labels + 1) % classes))
    accuracy = float(right.mean())
    low, high = accuracy - 0.01, accuracy + 0.009
    values = [
        Value(
            name="accuracy", value=accuracy, unit="fraction", n=n,
            low=low, high=high, method="wilson", confidence=0.95,
        ),
        Value(name="macro_f1", value=accuracy - 0.04, unit="fraction", n=n),
    ]  # fmt: skip
    if point.model in HEADED:
        s = frame[[f"s_{i}" for i in range(config["depth"])]].to_numpy().mean()
        k = frame[[f"k_{i}" for i in range(config["depth"])]].to_numpy().mean()
        values += [
            Value(name="soft_accuracy", value=accuracy - 0.015, unit="fraction", n=n),
            Value(name="mean_s", value=float(s), unit="fraction", n=n),
            Value(name="mean_k", value=float(k), unit="heads", n=n),
        ]
    return values, {}, {}, frame


def _complexity(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    frame = _frame(wanted, config)[["row_id", "length"]]
    frame["rarity"] = _rng(wanted, 3).normal(7, 1, len(frame)).astype(np.float32)
    values = [Value(name="rarity", value=7.0, unit="nats", n=len(frame))]
    return values, {}, {"unmeasured": {"overlap": "inputs are single texts"}}, frame


def _flops(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    share = _share_of_heads(wanted, config) + 0.004 * wanted.point.seed
    if tuning.share is not None and wanted.point.model == "budgetformer":
        share = tuning.share
    length = 128 if wanted.point.dataset == "random-tokens" else 45
    values = []
    for stat, at in (("mean", length), ("p50", length + 1), ("p95", length + 19)):
        for name, value in _cost(config, at, share).items():
            values.append(Value(name=name, value=value, unit="MACs", context={"stat": stat}))
    return values, {}, {"check": {}}, None


def _memory(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    peak = 4e5 * config["depth"] * tuning.peak.get(wanted.point.label, 1.0)
    return (
        [
            Value(name="parameters", value=150_000 + 50_000 * config["depth"], unit="count"),
            Value(name="peak_memory", value=peak, unit="bytes", context={"batch_size": 1}),
            Value(name="peak_memory", value=peak * 20, unit="bytes", context={"batch_size": 32}),
        ],
        {},
        {},
        None,
    )


def _latency(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    share = _share_of_heads(wanted, config)
    values = []
    for batch_size in tuning.batch_sizes:
        best = 1.35 if batch_size == 32 else 1.1
        speedup = 1 + (best - 1) * (1 - share)
        if wanted.point.model in HEADED:
            speedup *= 0.95 if batch_size == 32 else 0.6
        context = {"batch_size": batch_size}
        values.append(
            Value(
                name="speedup", value=speedup, unit="ratio", n=3, low=speedup * 0.97,
                high=speedup * 1.03, method="log_ratio_t", confidence=0.95, context=context,
            )
        )  # fmt: skip
        if tuning.promise is not None:
            values.append(
                Value(name="promised_speedup", value=tuning.promise, unit="ratio", context=context)
            )
        base = 0.4e-3 * batch_size**0.8
        for who, value in (("candidate", base / speedup), ("baseline", base)):
            values.append(
                Value(name="latency", value=value, unit="s", context={**context, "who": who})
            )
    return values, {}, {"processes": 3}, None


def _carbon(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    values = [Value(name="energy", value=11.73, unit="J", context={"per_inputs": 1000})]
    return values, {}, {"energy_source": tuning.energy_source, "ram_share": 0.71}, None


def _training(wanted: Measurable, config: dict[str, Any], tuning: Tuning) -> Any:
    low, high = tuning.validation - 0.02, tuning.validation + 0.02
    values = [
        Value(
            name="validation_accuracy", value=tuning.validation, unit="fraction", n=549,
            low=low, high=high, method="wilson", confidence=0.95,
        ),
        Value(name="train_seconds", value=9.0, unit="s"),
    ]  # fmt: skip
    series: dict[str, list[Any]] = {
        "epoch": [1, 2, 3],
        "loss_task": [0.9, 0.4, 0.2],
        "loss_total": [0.92, 0.41, 0.21],
    }
    if wanted.point.model == "budgetformer":
        end = _share_of_heads(wanted, config)
        series |= {
            "mean_s": [0.5, (0.5 + end) / 2, end],
            "entropy": [0.97, 0.8, 0.5],
            "loss_budget": [0.05, 0.01, 0.002],
            "loss_entropy": [-0.008, 0.0, 0.006],
            "schedule_tau": [1.5, 1.0, 0.5],
            "schedule_noise": [0.67, 0.33, 0.0],
            "schedule_entropy_weight": [-0.0033, 0.0033, 0.01],
        }
    series = {name: entries[: tuning.epochs] for name, entries in series.items()}
    return values, series, {}, None


@pytest.fixture(scope="session")
def tuning() -> type[Tuning]:
    """`Tuning`, for tests that change the made-up numbers."""
    return Tuning


@pytest.fixture(scope="session")
def made_up_suite() -> type[MadeUp]:
    """`MadeUp`, for suites of other folders."""
    return MadeUp


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUp:
    """The made-up suite with no record yet, in this test's own working state."""
    return MadeUp(tmp_path)


@pytest.fixture
def dense_only(tmp_path: Path) -> MadeUp:
    """A suite that looks at the dense model's validation accuracy alone; no record yet."""
    return MadeUp(tmp_path, VALIDATION)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> ResultSet:
    """The whole made-up suite with every record; for reading only."""
    return MadeUp(tmp_path_factory.mktemp("finished")).write().results()


@pytest.fixture(scope="session")
def rendered(finished: ResultSet) -> list[Rendered]:
    """Every figure of the finished suite."""
    return render_all(View(finished))


@pytest.fixture
def drawn_before(rendered: list[Rendered], monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the figures of the finished suite in the place of drawing, which takes seconds."""
    monkeypatch.setattr("benchmarks.reporting.figures.gallery.render_all", lambda _: rendered)


@pytest.fixture
def not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without figures."""
    monkeypatch.setattr("benchmarks.reporting.figures.gallery.render_all", lambda _: [])
