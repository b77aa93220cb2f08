"""Speed-up over the baseline: the two take turns, in several fresh processes, on the same inputs."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.errors import MeterError
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.options import with_defaults
from benchmarks.meters.shares import with_interval
from benchmarks.meters.specs import BATCH_SIZES
from benchmarks.records import DataUsed, Value
from benchmarks.statistics.intervals import MIN_PROCESSES, log_ratio_t

if TYPE_CHECKING:
    from benchmarks.data.batches import AnyBatch
    from models.interface import Classifier

TimeBlock = Callable[[Callable[[], None], float], float]
"""Takes something to run and the least seconds to spend on it; returns mean seconds of one run."""

DEFAULTS = {
    "batch_sizes": BATCH_SIZES,
    "blocks": 8,
    "min_block_s": 0.02,
    "max_run_s": 0.05,
    "max_pair_s": 1.5,
    "n_inputs": 32,
    "seed": 0,
    "n_processes": 3,
}
NOISY = 0.10
"""IQR over median of the blocks' ratios from which a figure is called noisy."""


def timed_block(run: Callable[[], None], min_s: float) -> float:
    """Mean seconds of `run` on one thread, over at least `min_s`, after a call that is not counted."""
    from torch.utils.benchmark import Timer

    timer = Timer("run()", globals={"run": run}, num_threads=1)
    return float(timer.blocked_autorange(min_run_time=min_s).mean)


class Latency:
    """The latency meter.

    Options: `batch_sizes`; `blocks`, blocks of each of the two per process; `min_block_s`, seconds
    of one block; `max_pair_s`, seconds after which a slow pair gets no further blocks (at least two
    each are always timed); `n_inputs`, inputs per process, fewer where the slower model would take
    longer than `max_run_s` for all of them, but always one batch; `seed` of their choice;
    `n_processes`.
    """

    def __init__(
        self,
        time_block: TimeBlock = timed_block,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._time_block = time_block
        self._clock = clock

    def sample(
        self,
        items: Sequence[tuple[Subject, Subject | None]],
        replicate: int,
        options: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """Times each pair in this process; see `ReplicatedMeter`.

        Inputs are drawn from the test split, unsorted as traffic would come, and differ from
        process to process; both models of a pair see the same ones. A batch is padded to its
        longest input.

        Raises:
            MeterError: the two models read different data, or give an output that is not finite.
        """
        chosen = with_defaults("latency", options, DEFAULTS)
        samples = []
        for candidate, baseline in items:
            if baseline is None:
                raise MeterError(f"latency of '{candidate.point.label}' needs a baseline")
            samples.append(self._pair(candidate, baseline, replicate, chosen))
        return samples

    def _pair(
        self, candidate: Subject, baseline: Subject, replicate: int, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        from benchmarks.meters.inputs import data_used

        if candidate.data.hash != baseline.data.hash:
            raise MeterError(
                f"'{candidate.point.label}' and its baseline '{baseline.point.label}' read "
                "different data, so they cannot be timed on the same inputs"
            )
        load_before = os.getloadavg()[0]
        batches = [
            self._batch_size(candidate, baseline, int(size), replicate, options)
            for size in options["batch_sizes"]
        ]
        return {
            "batches": batches,
            "load_before": load_before,
            "load_after": os.getloadavg()[0],
            "data": data_used(candidate.data).model_dump(),
        }

    def _batch_size(
        self,
        candidate: Subject,
        baseline: Subject,
        size: int,
        replicate: int,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        inputs = _draw(candidate, size, options["n_inputs"], [options["seed"], replicate, size])
        subjects = (candidate, baseline)
        longest = options["max_run_s"]
        slower = max(self._seconds_of_one(s.model, inputs[0], longest) for s in subjects)
        inputs = inputs[: max(1, int(longest / slower))]
        macs = [_first_pass(subject, inputs) for subject in subjects]
        runs = [_runner(subject.model, inputs) for subject in subjects]
        seconds: tuple[list[float], list[float]] = ([], [])
        began = self._clock()
        while len(seconds[0]) < options["blocks"] and (
            len(seconds[0]) < 2 or self._clock() - began < options["max_pair_s"]
        ):
            for which in (0, 1, 1, 0):
                seconds[which].append(
                    self._time_block(runs[which], options["min_block_s"]) / len(inputs)
                )
        return {
            "batch_size": size,
            "n_inputs": sum(map(len, inputs)),
            "candidate_s": seconds[0],
            "baseline_s": seconds[1],
            "log_ratios": [math.log(b / a) for a, b in zip(*seconds, strict=True)],
            "candidate_macs": macs[0],
            "baseline_macs": macs[1],
        }

    def _seconds_of_one(self, model: Classifier, batch: AnyBatch, longest: float) -> float:
        """Seconds of a batch, taken from its second pass unless the first is past `longest`."""
        run = _runner(model, [batch])
        seconds = 0.0
        for _ in range(2):
            began = self._clock()
            run()
            seconds = self._clock() - began
            if seconds > longest:
                break
        return max(seconds, 1e-9)

    def combine(
        self, samples: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Measurement:
        """One measurement of one pair; the process is the unit of the interval.

        Returns:
            Per batch size (context `batch_size`): speedup (baseline's time over the candidate's,
            with an interval from 3 processes on), promised_speedup (the same ratio of MACs on the
            inputs timed), realised_share (the one over the other, where MACs promise a gain), and
            latency in s of one forward pass (context `who`: candidate or baseline), for orientation.
        """
        del options
        values: list[Value] = []
        warnings: list[str] = []
        if len(samples) < MIN_PROCESSES:
            warnings.append(f"no interval: {len(samples)} processes, and it takes {MIN_PROCESSES}")
        for parts in zip(*(sample["batches"] for sample in samples), strict=True):
            values += _values(parts)
            warnings += _noise(parts)
        return Measurement(
            values=values,
            data=DataUsed.model_validate(samples[0]["data"]),
            series={
                f"log_ratios_batch_{parts[0]['batch_size']}": [part["log_ratios"] for part in parts]
                for parts in zip(*(sample["batches"] for sample in samples), strict=True)
            },
            info={
                "threads": 1,
                "processes": len(samples),
                "inputs": "drawn from the test split by seed, anew in each process, unsorted; "
                "a batch is padded to its longest input",
                "load_before": [sample["load_before"] for sample in samples],
                "load_after": [sample["load_after"] for sample in samples],
            },
            warnings=warnings,
        )


def _values(parts: Sequence[Mapping[str, Any]]) -> list[Value]:
    """Values of one batch size, from one part per process."""
    context: dict[str, int | float | str] = {"batch_size": parts[0]["batch_size"]}
    means = [statistics.fmean(part["log_ratios"]) for part in parts]
    n = len(means)
    if n < MIN_PROCESSES:
        realised = math.exp(statistics.fmean(means))
        speedup = Value(name="speedup", value=realised, unit="ratio", n=n, context=context)
    else:
        interval = log_ratio_t(means)
        realised = interval.estimate
        speedup = with_interval("speedup", interval, "ratio", context)
    inputs = sum(part["n_inputs"] for part in parts)
    promised = sum(part["baseline_macs"] for part in parts) / sum(
        part["candidate_macs"] for part in parts
    )
    values = [
        speedup,
        Value(name="promised_speedup", value=promised, unit="ratio", n=inputs, context=context),
    ]
    if promised > 1:
        values.append(
            Value(name="realised_share", value=realised / promised, unit="ratio", context=context)
        )
    for who in ("candidate", "baseline"):
        blocks = [seconds for part in parts for seconds in part[f"{who}_s"]]
        values.append(
            Value(
                name="latency",
                value=statistics.median(blocks),
                unit="s",
                n=len(blocks),
                context={**context, "who": who},
            )
        )
    return values


def _noise(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    ratios = [math.exp(ratio) for part in parts for ratio in part["log_ratios"]]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    spread = (high - low) / middle
    if spread <= NOISY:
        return []
    size = parts[0]["batch_size"]
    return [f"noisy at batch {size}: IQR/median of the blocks' ratios is {spread:.0%}"]


def _draw(subject: Subject, size: int, n_inputs: int, seed: list[int]) -> list[AnyBatch]:
    """Whole batches of `size` inputs, `n_inputs` in all or one batch if that is more."""
    import numpy as np

    from benchmarks.data.batches import collate

    split = subject.data.test()
    n = max(1, n_inputs // size) * size
    rows = np.random.default_rng(seed).choice(len(split), n, replace=n > len(split))
    return [collate(split, rows[i : i + size]) for i in range(0, n, size)]


def _first_pass(subject: Subject, inputs: Sequence[AnyBatch]) -> float:
    """Warms the model up, looks at what it says, and returns its MACs by formula, unpadded.

    Raises:
        MeterError: an output is not finite.
    """
    import torch

    total = 0.0
    config = subject.model.config
    with torch.inference_mode():
        for batch in inputs:
            output = subject.model(*batch.inputs)
            if not bool(torch.isfinite(output.logits).all()):
                raise MeterError(f"'{subject.point.label}' gives outputs that are not finite")
            lengths = batch.lengths
            work = [None] * len(lengths) if output.work is None else output.work.tolist()
            total += sum(
                config.macs(length, done).total for length, done in zip(lengths, work, strict=True)
            )
    return total


def _runner(model: Classifier, inputs: Sequence[AnyBatch]) -> Callable[[], None]:
    import torch

    @torch.inference_mode()
    def run() -> None:
        for batch in inputs:
            model(*batch.inputs)

    return run
