"""The worker process: one torch thread, no shared state, dies with its parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from benchmarks.errors import FrugalbenchError
from benchmarks.planning.plan import PointTask, SampleTask
from benchmarks.running.jobs import run_point, run_sample
from benchmarks.running.recording import failure_of

Message = tuple[Literal["progress", "done", "broken"], Any]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
THREADS = 1


def worker_main(connection: Connection, runs: Path, core: int | None) -> None:
    """Takes tasks from `connection` until it is closed or sends None.

    Args:
        connection: the parent's end is the engine.
        runs: working state.
        core: the core to stay on, for timed samples; None leaves the choice to the system.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the engine, which stops us
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    import torch

    torch.set_num_threads(THREADS)
    torch.set_num_interop_threads(THREADS)

    def report(state: Mapping[str, Any]) -> None:
        connection.send(("progress", dict(state)))

    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        if task is None:
            return
        try:
            if isinstance(task, PointTask):
                outcome = run_point(task, runs, report)
            elif isinstance(task, SampleTask):
                outcome = run_sample(task, runs, report)
            else:
                raise TypeError(f"not a task: {task!r}")
            connection.send(("done", outcome))
        except FrugalbenchError as error:
            connection.send(("broken", (type(error), str(error))))
        except BaseException as error:  # noqa: BLE001 - the engine decides what it means
            connection.send(("broken", (RuntimeError, failure_of(error).traceback)))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
