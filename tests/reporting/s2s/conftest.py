"""Made-up records of a suite that replaces layers of a trained teacher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.catalog import MODELS
from benchmarks.records import Value
from benchmarks.reporting.figures.gallery import Rendered, render_all
from benchmarks.reporting.view import View
from benchmarks.results import ResultSet
from benchmarks.statistics.intervals import wilson

SUITE = (Path(__file__).parent / "made-up-s2s.toml").read_text(encoding="utf-8")
DEPTH = 8
DELETED = (0.30, 0.12, 0.06, 0.03, 0.02, 0.015, 0.004, 0.001)
"""Accuracy lost by deleting each layer's attention, untrained."""
SPARSITY = (0.10, 0.14, 0.12, 0.22, 0.30, 0.28, 0.41, 0.46)
"""Of each layer's attention, before seeds differ."""
LOST = {"bilstm": 0.25, "bilstm-half": 0.3, "conv": 0.4, "identity": 0.6, "attention": 0.0}
"""Share of the deletion's loss that a student with this in attention's place keeps."""
KEPT = {"teacher-100": 1.0, "teacher-80": 0.78, "teacher-50": 0.53}
CALIBRATED = {"teacher-100": 1.0, "teacher-80": 0.81, "teacher-50": 0.49}
TEACHER = {"teacher": 0.70, "teacher-100": 0.71, "teacher-80": 0.69, "teacher-50": 0.64}
NARROWER = {"teacher": 1.0, "teacher-100": 0.95, "teacher-80": 0.9, "teacher-50": 0.4}
"""By what a student's loss shrinks under a sparse teacher."""
SPEED = {"bilstm": 0.5, "bilstm-half": 0.7, "conv": 1.1, "identity": 1.25}
"""Speed-up at 65 or 197 tokens with all layers replaced; it grows with the tokens."""
PROMISED = {"bilstm": -0.1, "bilstm-half": 0.2, "conv": 0.4, "identity": 0.6}
"""What the MACs promise beyond 1 where SPEED is realised."""
CONTINUED = 0.705
LONGER = 0.03
"""Gained by all that see 40,000 samples."""
ODD = {
    "bilstm": (1.0, 0.3, 1.9, 0.9, 1.4, 0.4, 2.0, 9.0),
    "identity": (1.0, 0.4, 1.1, 1.5, 0.6, 1.2, 1.0, 5.0),
}
"""Factors of the loss by layer, so that neither depth nor deletion says all."""


def replaced(point: Any) -> tuple[int, ...]:
    return tuple(point.params.get("replace", ()))


def mixer(point: Any) -> str:
    default = "bilstm" if "replace" in MODELS.get(point.model).declarable() else "attention"
    return str(point.params.get("mixer", default)) if replaced(point) else "attention"


def accuracy_of(point: Any) -> float:
    """What a point is made to reach."""
    shift = 0.004 * (point.seed - 1)
    if point.source is None:
        return TEACHER[point.label] + shift
    shift += LONGER if point.params.get("samples") == 40_000 else 0.0
    if not replaced(point):
        return CONTINUED + shift
    own = replaced(point)
    odd = ODD.get(mixer(point), (1.0,) * DEPTH) if len(own) == 1 else (1.0,) * DEPTH
    lost = sum(DELETED[layer] * odd[layer] for layer in own) * LOST[mixer(point)]
    lost *= NARROWER[point.source.label]
    # what is lost differs from seed to seed, and more so for single layers
    luck = 0.05 * (point.seed - 1) + (0.6 * ((own[0] + point.seed) % 3 - 1) if len(own) == 1 else 0)
    return TEACHER[point.source.label] + shift - lost * (1 + luck)


def _accuracy(wanted: Any, config: Any, tuning: Any) -> Any:
    right = round(accuracy_of(wanted.point) * 10_000)
    share = wilson(right, 10_000)
    values = [
        Value(
            name="accuracy", value=share.estimate, unit="fraction", n=10_000, low=share.low,
            high=share.high, method="wilson", confidence=0.95,
        ),
        Value(name="macro_f1", value=share.estimate - 0.01, unit="fraction", n=10_000),
    ]  # fmt: skip
    teacher = wanted.point.source or wanted.point
    if teacher.model == "avit":
        values.append(
            Value(
                name="keep_ratio", value=KEPT[teacher.label], unit="fraction",
                context={"tokens": "all"},
            )
        )  # fmt: skip
    return values, {}, {}, None


def _training(wanted: Any, config: Any, tuning: Any) -> Any:
    end = accuracy_of(wanted.point)
    values = [
        Value(name="validation_accuracy", value=end, unit="fraction", n=5000),
        Value(name="train_seconds", value=60.0, unit="s"),
    ]
    series: dict[str, list[Any]] = {"epoch": [1, 2, 3], "loss_task": [2.0, 1.4, 1.1]}
    if wanted.point.model == "avit":
        series["schedule_calibrated_keep_ratio"] = [CALIBRATED[wanted.point.label]] * 3
    if wanted.point.source is not None:
        parts = range(1, 11)
        series = {
            "epoch": list(parts),
            "samples": [1000 * part for part in parts],
            "validation_accuracy": [end - 0.3 * (1 - part / 10) ** 2 for part in parts],
            "loss_task": [2.0 - 0.1 * part for part in parts],
        }
    return values, series, {}, None


def _sparsity(wanted: Any, config: Any, tuning: Any) -> Any:
    point = wanted.point
    own = replaced(point)
    rng = np.random.default_rng(point.seed)
    base = np.asarray(SPARSITY) + 0.02 * rng.normal(size=DEPTH)
    values, series = [], {}
    for number, measure in enumerate(("concentration", "top_mass", "hoyer", "below_uniform")):
        for queries in ("all", "class"):
            context = {"measure": measure, "queries": queries}
            # no two measures put the layers in the same order
            moved = np.roll(base, number + (4 if queries == "class" else 0))
            by_layer = moved + 0.1 * number + (0.05 if queries == "class" else 0.0)
            values += [
                Value(
                    name="sparsity", value=float(x), unit="fraction", n=256,
                    context={**context, "layer": layer},
                )
                for layer, x in enumerate(by_layer)
                if layer not in own
            ]  # fmt: skip
            series[f"{measure}_{queries}"] = [
                [None if layer in own else float(x + 0.05 * head) for head in range(3)]
                for layer, x in enumerate(by_layer)
            ]
    teacher = point.source or point
    if teacher.model == "avit":
        ratio = KEPT[teacher.label]
        falling = np.linspace(1.0, 2 * ratio - 1, DEPTH)
        context = {"tokens": "patches"}
        values.append(Value(name="keep_ratio", value=ratio, unit="fraction", context=context))
        values += [
            Value(
                name="keep_ratio", value=float(x), unit="fraction",
                context={**context, "layer": layer},
            )
            for layer, x in enumerate(falling)
        ]  # fmt: skip
        series["kept_layers"] = [
            {"row_id": 11 * i, "layers": rng.integers(1, DEPTH + 1, 64).tolist()} for i in range(8)
        ]
    return values, series, {"without_weights": {}}, None


def _deletion(wanted: Any, config: Any, tuning: Any) -> Any:
    groups = {"quarter 1": (0, 1), "quarter 4": (6, 7), "last half": (4, 5, 6, 7)}
    groups["all"] = tuple(range(DEPTH))
    deleted: list[tuple[dict[str, Any], float]] = [
        ({"layer": layer}, drop) for layer, drop in enumerate(DELETED)
    ]
    deleted += [
        ({"group": name, "layers": f"{own[0]}-{own[-1]}"}, sum(DELETED[i] for i in own))
        for name, own in groups.items()
    ]
    values = [
        Value(
            name="accuracy_drop", value=(mean := drop * (1 + 0.1 * (wanted.point.seed - 1))),
            unit="fraction", n=2000, low=mean - 0.01, high=mean + 0.01,
            method="paired_adjusted_wald", confidence=0.95, context=context,
        )
        for context, drop in deleted
    ]  # fmt: skip
    return values, {}, {"margin": 0.01, "undecided": [], "without_mixing": []}, None


def _flops(wanted: Any, config: Any, tuning: Any) -> Any:
    point = wanted.point
    cost = MODELS.get(point.model)(**{**point.params, "max_length": point.max_length}).macs(
        point.max_length
    )
    names = {
        "macs": cost.total,
        "macs_attention": cost.attention,
        "macs_attention_core": cost.attention_core,
    }
    values = [
        Value(name=name, value=value, unit="MACs", context={"stat": stat})
        for stat in ("mean", "p50", "p95")
        for name, value in names.items()
    ]
    return values, {}, {"check": {}}, None


def _memory(wanted: Any, config: Any, tuning: Any) -> Any:
    own = len(replaced(wanted.point)) * (1 if mixer(wanted.point) == "bilstm" else -1)
    values = [Value(name="parameters", value=900_000 + 10_000 * own, unit="count")]
    values += [
        Value(
            name="peak_memory", value=2e6 * size * (1 + 0.01 * own), unit="bytes",
            context={"batch_size": size},
        )
        for size in (1, 32)
    ]  # fmt: skip
    return values, {}, {}, None


def _latency(wanted: Any, config: Any, tuning: Any) -> Any:
    point = wanted.point
    share = len(replaced(point)) / config["depth"]
    grown = (point.max_length / (224 if point.recipe is None else 32)) ** 1.2
    values = []
    for size in (1, 32):
        whole = SPEED[mixer(point)] * grown * (1.2 if size == 32 else 1.0)
        ratio = 1 / (1 - share + share / whole)
        context = {"batch_size": size}
        values += [
            Value(
                name="speedup", value=ratio, unit="ratio", n=3, low=ratio * 0.97, high=ratio * 1.03,
                method="log_ratio_t", confidence=0.95, context=context,
            ),
            Value(
                name="promised_speedup", value=1 + PROMISED[mixer(point)] * share * grown, unit="ratio",
                context=context,
            ),
        ]  # fmt: skip
    return values, {}, {"processes": 3}, None


MAKERS: dict[str, Callable[..., Any]] = {
    "accuracy": _accuracy, "training": _training, "sparsity": _sparsity, "deletion": _deletion,
    "flops": _flops, "memory": _memory, "latency": _latency,
}  # fmt: skip


@pytest.fixture(scope="session")
def reach() -> Callable[[Any], float]:
    """What a point's accuracy is made to be, before it is rounded to whole inputs."""
    return accuracy_of


@pytest.fixture(scope="session")
def s2s_tuning(tuning: Any) -> Callable[..., Any]:
    """`Tuning` with this suite's records."""
    return lambda **changes: tuning(makers=MAKERS, **changes)


@pytest.fixture
def s2s(tmp_path: Path, made_up_suite: Any) -> Any:
    """The made-up suite with no record yet, in this test's own working state."""
    return made_up_suite(tmp_path, SUITE)


@pytest.fixture(scope="session")
def s2s_finished(
    tmp_path_factory: pytest.TempPathFactory, made_up_suite: Any, s2s_tuning: Any
) -> ResultSet:
    """The whole made-up suite with every record; for reading only."""
    made = made_up_suite(tmp_path_factory.mktemp("s2s"), SUITE).write(s2s_tuning())
    results: ResultSet = made.results()
    return results


@pytest.fixture(scope="session")
def s2s_view(s2s_finished: ResultSet) -> View:
    return View(s2s_finished)


@pytest.fixture(scope="session")
def s2s_rendered(s2s_view: View) -> list[Rendered]:
    return render_all(s2s_view)
