"""Latency: who is timed when and on what, with a made-up clock; intervals with made-up samples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from benchmarks.data.load import EncodedSplit, TextData, load_text
from benchmarks.errors import MeterError, UsageError
from benchmarks.meters.interface import Subject
from benchmarks.meters.latency import Latency
from benchmarks.planning.points import Point
from models.config import EncoderConfig, Macs
from models.interface import Classifier, ClassifierOutput


class Linear(EncoderConfig):
    """Costs `d_model` MACs a token."""

    def macs(self, length: int, k: Any = None) -> Macs:
        del k
        return Macs(feed_forward=float(length * self.d_model))


class Recording(Classifier):
    """Says nothing; remembers what it was given."""

    def __init__(self, width: int = 8, logit: float = 0.0) -> None:
        super().__init__()
        self.config = Linear(d_model=width, n_heads=1)
        self.logit = logit
        self.inputs: list[Tensor] = []

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del key_padding_mask, segment_ids
        self.inputs.append(input_ids)
        return ClassifierOutput(torch.full((len(input_ids), 2), self.logit))


class Clock:
    """Stands still unless told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def data_with(n: int = 60) -> TextData:
    data = load_text("random-tokens", max_length=20)
    lengths = 1 + np.arange(n) % 20
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


def pair(
    candidate: Recording, baseline: Recording, data: TextData | None = None
) -> tuple[Subject, Subject]:
    data = data or data_with()
    point = Point("any", {}, "random-tokens", 20, recipe=None, label="any")
    return Subject(point, candidate, data, None), Subject(point, baseline, data, None)


def by_width(model: Recording, seconds_per_width: float = 1e-3) -> float:
    return model.config.d_model * seconds_per_width


class ScriptedTimer:
    """Runs the block once, and answers with a time by which model ran in it."""

    def __init__(self, models: tuple[Recording, Recording], clock: Clock, block_s: float = 0.0):
        self.models, self.clock, self.block_s = models, clock, block_s
        self.order: list[int] = []

    def __call__(self, run: Callable[[], None], min_s: float) -> float:
        assert min_s == 0.02
        before = [len(model.inputs) for model in self.models]
        run()
        ran = [len(model.inputs) > n for model, n in zip(self.models, before, strict=True)]
        which = ran.index(True)
        self.order.append(which)
        self.clock.now += self.block_s
        return by_width(self.models[which])


def sampled(
    candidate: Recording,
    baseline: Recording,
    *,
    replicate: int = 0,
    block_s: float = 0.0,
    **options: Any,
) -> tuple[dict[str, Any], ScriptedTimer]:
    clock = Clock()
    timer = ScriptedTimer((candidate, baseline), clock, block_s)
    latency = Latency(time_block=timer, clock=clock)
    (sample,) = latency.sample([pair(candidate, baseline)], replicate, options)
    return json.loads(json.dumps(sample)), timer


def test_the_two_take_turns_and_each_ratio_is_baseline_over_candidate() -> None:
    sample, timer = sampled(Recording(8), Recording(16), blocks=4, batch_sizes=[4])
    assert timer.order == [0, 1, 1, 0, 0, 1, 1, 0]
    (part,) = sample["batches"]
    assert part["log_ratios"] == pytest.approx([math.log(2)] * 4)
    assert part["candidate_s"] == pytest.approx([0.008 / 8] * 4)  # 32 inputs are 8 forward passes
    assert part["baseline_macs"] == 2 * part["candidate_macs"]


def test_both_see_the_same_inputs_and_each_process_its_own() -> None:
    def inputs(replicate: int) -> tuple[list[Tensor], list[Tensor]]:
        candidate, baseline = Recording(), Recording()
        sampled(candidate, baseline, replicate=replicate, batch_sizes=[1], n_inputs=5, blocks=2)
        return candidate.inputs[-5:], baseline.inputs[-5:]

    mine, theirs = inputs(0)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    again, _ = inputs(0)
    assert all(torch.equal(a, b) for a, b in zip(mine, again, strict=True))
    other, _ = inputs(1)
    assert [len(x[0]) for x in mine] != [len(x[0]) for x in other]


def test_batches_are_whole_even_where_the_split_is_small() -> None:
    clock = Clock()
    models = Recording(), Recording()
    latency = Latency(ScriptedTimer(models, clock), clock)
    (sample,) = latency.sample([pair(*models, data_with(3))], 0, {"batch_sizes": [8]})
    assert sample["batches"][0]["n_inputs"] == 32
    assert {len(batch) for batch in models[0].inputs} == {8}


def test_a_slow_pair_gets_two_blocks_of_each_at_least_and_stops_at_its_time() -> None:
    options = {"batch_sizes": [1], "max_pair_s": 10.0, "blocks": 100}
    sample, _ = sampled(Recording(), Recording(), block_s=30.0, **options)
    assert len(sample["batches"][0]["log_ratios"]) == 2
    sample, _ = sampled(Recording(), Recording(), block_s=1.0, **options)
    assert len(sample["batches"][0]["log_ratios"]) == 6


def test_a_slow_model_is_timed_on_fewer_inputs() -> None:
    class Slow(Recording):
        def forward(self, *args: Any) -> ClassifierOutput:
            clock.now += 0.02
            return super().forward(*args)

    clock = Clock()
    models = Slow(), Recording()
    latency = Latency(ScriptedTimer(models, clock), clock)
    (sample,) = latency.sample([pair(*models)], 0, {"batch_sizes": [1, 32], "max_run_s": 0.05})
    assert [part["n_inputs"] for part in sample["batches"]] == [2, 32]


def test_outputs_that_are_not_finite_are_not_timed() -> None:
    with pytest.raises(MeterError, match="'any' gives outputs that are not finite"):
        sampled(Recording(), Recording(logit=math.nan))


def test_a_pair_needs_a_baseline_and_common_data() -> None:
    candidate, baseline = pair(Recording(), Recording())
    with pytest.raises(MeterError, match="needs a baseline"):
        Latency().sample([(candidate, None)], 0, {})
    baseline.data = replace(baseline.data, hash="another")
    with pytest.raises(MeterError, match="read different data"):
        Latency().sample([(candidate, baseline)], 0, {})


def test_an_unknown_option_names_its_neighbours() -> None:
    with pytest.raises(UsageError, match="did you mean 'blocks'"):
        Latency().sample([], 0, {"block": 3})


def sample_of(ratios: list[float], *, promised: float = 2.0, size: int = 32) -> dict[str, Any]:
    return {
        "batches": [
            {
                "batch_size": size,
                "n_inputs": 64,
                "log_ratios": [math.log(ratio) for ratio in ratios],
                "candidate_s": [0.010] * len(ratios),
                "baseline_s": [0.010 * ratio for ratio in ratios],
                "candidate_macs": 100.0,
                "baseline_macs": 100.0 * promised,
            }
        ],
        "load_before": 0.1,
        "load_after": 0.2,
        "data": {"name": "made-up", "split": "test", "n": 9, "hash": "abc"},
    }


def values(samples: list[dict[str, Any]]) -> dict[tuple[str, Any], Any]:
    return {(v.name, v.context.get("who")): v for v in Latency().combine(samples, {}).values}


def test_the_process_is_the_unit_of_the_interval() -> None:
    samples = [sample_of([1.4, 1.6]), sample_of([1.5] * 9), sample_of([1.6, 1.65])]
    found = values(samples)["speedup", None]
    means = [np.mean(np.log(r)) for r in ([1.4, 1.6], [1.5] * 9, [1.6, 1.65])]
    half = stats.t.ppf(0.975, 2) * np.std(means, ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(math.exp(np.mean(means)))
    assert (found.low, found.high) == pytest.approx(
        (math.exp(np.mean(means) - half), math.exp(np.mean(means) + half))
    )
    assert (found.n, found.method, found.context) == (3, "log_ratio_t", {"batch_size": 32})


def test_promise_and_share_stand_beside_the_speedup() -> None:
    found = values([sample_of([1.5, 1.5])] * 3)
    assert found["promised_speedup", None].value == pytest.approx(2.0)
    assert found["realised_share", None].value == pytest.approx(0.75)
    assert found["latency", "candidate"].value == pytest.approx(0.010)
    assert found["latency", "baseline"].value == pytest.approx(0.015)


def test_without_a_promise_there_is_no_share() -> None:
    assert ("realised_share", None) not in values([sample_of([1.0, 1.0], promised=0.98)] * 3)


def test_two_processes_give_no_interval_and_say_so() -> None:
    result = Latency().combine([sample_of([1.5, 1.5])] * 2, {})
    speedup = result.values[0]
    assert (speedup.value, speedup.low) == (pytest.approx(1.5), None)
    assert "no interval: 2 processes" in result.warnings[0]


@pytest.mark.parametrize(("spread", "noisy"), [(0.04, False), (0.30, True)])
def test_scattered_ratios_are_called_noisy(spread: float, noisy: bool) -> None:
    ratios = [1 - spread / 2, 1 - spread / 2, 1.0, 1 + spread / 2, 1 + spread / 2]
    warnings = Latency().combine([sample_of(ratios)] * 3, {}).warnings
    assert [w.startswith("noisy at batch 32") for w in warnings] == ([True] if noisy else [])


def test_combining_needs_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys, benchmarks.meters.latency; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=_root())


def _root() -> str:
    from benchmarks.paths import CHECKOUT

    return str(CHECKOUT)


@pytest.mark.slow
def test_a_model_against_itself_is_as_fast_as_itself() -> None:
    from benchmarks.training.build import build_model
    from models.dense_config import DenseConfig

    data = data_with()
    model = build_model(DenseConfig(max_length=20), seed=0).eval()
    subject = Subject(Point("dense", {}, "random-tokens", 20, recipe=None), model, data, None)
    samples = [Latency().sample([(subject, subject)], i, {"blocks": 6})[0] for i in range(3)]
    for value in Latency().combine(samples, {}).values:
        if value.name == "speedup":
            assert 0.5 < value.value < 2.0
        if value.name == "promised_speedup":
            assert value.value == 1.0
        if value.name == "latency":
            assert 0 < value.value < 10
