"""Parameters, and the exact peak of tensor memory in one forward pass."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.meters.inputs import data_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.options import with_defaults
from benchmarks.meters.specs import BATCH_SIZES
from benchmarks.records import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.data.batches import AnyBatch
    from models.interface import Classifier

DEFAULTS = {"batch_sizes": BATCH_SIZES}
N_LONGEST = 8
"""Least number of test inputs looked at: the longest ones, where the peak lies."""


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Size of the weights and peak memory of inference on the longest test inputs.

    Args:
        subject: a trained or fresh model.
        options: `batch_sizes` (default 1 and 32).

    Returns:
        parameters (count), parameter_bytes, and per batch size (context `batch_size`) peak_memory in
        bytes: the most that activations, outputs and kernels' scratch together took in any of the
        batches; weights and inputs, which are there before, are not in it.
    """
    from benchmarks.data.batches import collate

    sizes = [int(size) for size in with_defaults("memory", options, DEFAULTS)["batch_sizes"]]
    model, test = subject.model, subject.data.test()
    parameters = list(model.parameters())
    longest = np.argsort(-np.asarray(test.lengths), kind="stable")
    values = [
        Value(name="parameters", value=model.n_parameters(), unit="count"),
        Value(
            name="parameter_bytes",
            value=sum(p.numel() * p.element_size() for p in parameters),
            unit="bytes",
        ),
    ]
    for size in sizes:
        rows = longest[: max(size, N_LONGEST)]
        batches = [collate(test, rows[i : i + size]) for i in range(0, len(rows), size)]
        peaks = [peak_of_forward(model, batch) for batch in batches]
        values.append(
            Value(
                name="peak_memory",
                value=max(peaks),
                unit="bytes",
                n=len(peaks),
                context={"batch_size": size},
            )
        )
    return Measurement(
        values=values,
        data=data_used(subject.data),
        info={
            "counted": "activations, outputs and scratch of one forward pass; "
            "not the weights, not the inputs",
            "inputs": f"the longest of the test split, {N_LONGEST} or one batch",
            "source": "event stream of torch.profiler",
            "threads": 1,
        },
    )


def peak_of_forward(model: Classifier, batch: AnyBatch) -> int:
    """Peak bytes of one forward pass; the first pass, which may fill caches, is not counted."""
    import torch

    @torch.inference_mode()
    def forward() -> Any:
        return model(*batch.inputs)

    forward()
    return peak_of(forward)


def peak_of(work: Callable[[], Any]) -> int:
    """Most bytes of tensor memory that `work` held at once, beyond what was there before it.

    Read from torch.profiler's event of each allocation and release, which also shows what fused
    kernels take for themselves. On one thread: some kernels take scratch per thread.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else two lines on stderr for each profile
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with profile(
            activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True
        ) as profiler:
            result = work()
        del result
    finally:
        torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    steps = sorted(
        (event["ts"], event["args"]["Ev Idx"], event["args"]["Bytes"])
        for event in events
        if event["name"] == "[memory]"
    )
    held = peak = 0
    for _, _, step in steps:
        held += step
        peak = max(peak, held)
    return peak
