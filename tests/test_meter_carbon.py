"""Carbon: arithmetic with a made-up tracker, grid factors, and where energy is said to come from."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.data.load import EncodedSplit, TextData, load_text
from benchmarks.errors import UsageError
from benchmarks.meters.carbon import Carbon, energy_source, grid_factor, repeat_for
from benchmarks.meters.interface import Subject
from benchmarks.planning.points import Point
from models.config import EncoderConfig
from models.interface import Classifier, ClassifierOutput


class Counting(Classifier):
    """Counts the inputs it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.config = EncoderConfig()
        self.seen = 0
        self.lengths: list[int] = []

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del key_padding_mask, segment_ids
        self.seen += len(input_ids)
        self.lengths.append(input_ids.shape[1])
        return ClassifierOutput(torch.zeros(len(input_ids), 2))


class Tracker:
    """Bills 1 J for the processor and 3 J for memory per task."""

    def __init__(self, mode: str = "cpu_load") -> None:
        self._hardware = [SimpleNamespace(_mode=mode)]
        self.tasks = 0

    def start_task(self) -> None:
        self.tasks += 1

    def stop_task(self) -> Any:
        return SimpleNamespace(cpu_energy=1 / 3.6e6, ram_energy=3 / 3.6e6, gpu_energy=99.0)


def data_with(n: int) -> TextData:
    data = load_text("random-tokens", max_length=8)
    lengths = 1 + np.arange(n) % 8
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    split = EncodedSplit(
        name="generated",
        row_ids=np.arange(n, dtype=np.int64),
        tokens=data.test().tokens[: offsets[-1]],
        segments=None,
        offsets=offsets,
        labels=np.zeros(n, np.int64),
    )
    return replace(data, _test=split)


def subject_of(model: Classifier, n: int = 50) -> Subject:
    return Subject(Point("any", {}, "random-tokens", 8, recipe=None), model, data_with(n), None)


def test_every_point_is_a_task_of_one_tracker() -> None:
    tracker, model = Tracker(), Counting()
    options = {"window_s": 0.0, "n_inputs": 20, "batch_size": 8}
    items = [(subject_of(model), None), (subject_of(model), None)]
    samples = json.loads(json.dumps(Carbon(tracker).sample(items, 0, options)))
    assert tracker.tasks == 2
    assert [sample["n"] for sample in samples] == [20, 20]
    assert samples[0]["cpu_j"] == pytest.approx(1)
    assert samples[0]["ram_j"] == pytest.approx(3)  # and an idle graphics card costs nothing
    assert model.lengths[:3] == sorted(model.lengths[:3])
    assert model.seen == 2 * 2 * 20  # a pass to warm up, a pass that is watched


def test_the_window_is_filled_with_whole_passes() -> None:
    now = [0.0]

    def work() -> None:
        now[0] += 0.7

    assert repeat_for(work, 2.0, clock=lambda: now[0]) == (3, pytest.approx(2.1))


def sample_of(**changes: Any) -> dict[str, Any]:
    return {
        "n": 500,
        "seconds": 2.0,
        "cpu_j": 3.0,
        "ram_j": 9.0,
        "energy_source": "model",
        "codecarbon": "3.3.2",
        "factor": {"country": "world average", "g_per_kwh": 360.0, "source": "a table"},
        "data": {"name": "made-up", "split": "test", "n": 9, "hash": "abc"},
        **changes,
    }


def test_figures_are_per_thousand_inputs() -> None:
    result = Carbon().combine([sample_of()], {})
    found = {v.name: (v.value, v.unit) for v in result.values}
    assert found == {
        "energy": (pytest.approx(24.0), "J"),
        "emissions": (pytest.approx(24.0 / 3.6e6 * 360.0), "gCO2e"),
        "seconds": (pytest.approx(4.0), "s"),
        "power": (pytest.approx(6.0), "W"),
    }
    assert result.info["grid"]["country"] == "world average"
    assert result.info["ram_share"] == pytest.approx(0.75)


def test_several_processes_are_pooled() -> None:
    result = Carbon().combine([sample_of(), sample_of(n=1500, seconds=6.0, cpu_j=15.0)], {})
    found = {v.name: v.value for v in result.values}
    assert found["energy"] == pytest.approx((12 + 24) / 2)
    assert found["seconds"] == pytest.approx(8 / 2)


@pytest.mark.parametrize("source", ["model", "constant", "rapl", "meter"])
def test_a_modelled_energy_says_that_it_restates_time(source: str) -> None:
    warnings = Carbon().combine([sample_of(energy_source=source)], {}).warnings
    assert bool(warnings) == (source in ("model", "constant"))


@pytest.mark.parametrize(
    ("mode", "source"),
    [
        ("intel_rapl", "rapl"),
        ("intel_power_gadget", "meter"),
        ("cpu_load", "model"),
        ("constant", "constant"),
        ("something new", "model"),
    ],
)
def test_the_source_is_the_hardware_that_the_tracker_settled_on(mode: str, source: str) -> None:
    assert energy_source(Tracker(mode)) == source


def test_no_country_is_the_world_average_and_is_called_so() -> None:
    world = grid_factor("")
    assert world["country"] == "world average"
    assert 300 < world["g_per_kwh"] < 700
    assert world["source"].startswith("http")


def test_a_country_has_its_own_factor() -> None:
    assert grid_factor("FRA")["g_per_kwh"] < 150 < grid_factor("pol")["g_per_kwh"]


def test_an_unknown_country_is_refused_and_not_replaced_by_the_world() -> None:
    with pytest.raises(UsageError, match="unknown country code 'FRX'"):
        grid_factor("FRX")


def test_an_unknown_option_names_its_neighbours() -> None:
    with pytest.raises(UsageError, match="did you mean 'country'"):
        Carbon(Tracker()).sample([], 0, {"contry": "FRA"})


@pytest.mark.slow
def test_the_real_tracker_bills_something_and_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    import socket

    asked: list[Any] = []

    def connect(self: socket.socket, address: Any) -> None:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.chdir(tmp_path)
    carbon = Carbon()
    samples = carbon.sample([(subject_of(Counting()), None)] * 2, 0, {"window_s": 0.3})
    for sample in samples:
        result = carbon.combine([sample], {})
        assert all(v.value > 0 for v in result.values)
        assert result.info["energy_source"] in ("meter", "nvml", "rapl", "model", "constant")
    assert not asked
    assert not list(tmp_path.glob("*.csv"))
    assert "codecarbon" not in capfd.readouterr().err
