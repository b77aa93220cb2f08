"""The main job for real, at its smallest: data, training, meters, records, report, check."""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.catalog import DATASETS
from benchmarks.data.fetch import is_available
from benchmarks.planning.plan import make_plan
from benchmarks.planning.suite import load_suite
from benchmarks.running.store import RecordStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.data,
    pytest.mark.skipif(
        not is_available(DATASETS.get("rotten-tomatoes")),
        reason="needs `frugalbench fetch rotten-tomatoes`",
    ),
]


def frugalbench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_smoke_runs_reports_checks_and_then_has_nothing_to_do(own_runs: Path) -> None:
    done = frugalbench("bench", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    report = own_runs / "reports/smoke"
    assert (report / "README.md").is_file()
    assert list(report.rglob("*.svg"))
    records = RecordStore(own_runs / "records").all()
    assert {r.status for r in records} == {"ok"}
    assert {r.meter for r in records} == {
        "training", "accuracy", "flops", "memory", "latency", "carbon", "sparsity", "deletion",
    }  # fmt: skip
    private = re.compile(
        rf"{re.escape(socket.gethostname())}|{re.escape(str(Path.home()))}|{re.escape(str(own_runs))}"
        rf"|\b{re.escape(getpass.getuser())}\b"
    )
    for path in [*own_runs.glob("records/*/*.json"), *report.rglob("*.md"), *report.rglob("*.svg")]:
        assert not private.search(path.read_text(encoding="utf-8")), path.name

    before = {p: p.stat().st_mtime_ns for p in own_runs.glob("records/*/*")}
    again = frugalbench("run", "smoke")
    assert "nothing to do" in again.stdout
    assert {p: p.stat().st_mtime_ns for p in own_runs.glob("records/*/*")} == before


def test_ctrl_c_keeps_what_was_finished_and_says_so(own_runs: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "run", "smoke", "--jobs", "1"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # tests that a shell runs in the background are started with this signal ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 300
    while not list(own_runs.glob("records/*/training-*.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; what was finished is kept" in said
    assert "Traceback" not in said
    plan = make_plan(load_suite("smoke"), RecordStore(own_runs / "records"))
    assert 0 < len(plan.done) < len(plan.wanted)
    assert not (own_runs / "run.lock.json").exists()


def test_a_killed_run_keeps_what_it_finished_and_the_next_one_does_only_the_rest(
    own_runs: Path,
) -> None:
    command = [sys.executable, "-m", "benchmarks", "run", "smoke", "--jobs", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 300
    while not list(own_runs.glob("records/*/flops-*.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)  # workers end themselves when their parent is gone
    kept = {p: p.read_bytes() for p in own_runs.glob("records/*/*.json")}
    plan = make_plan(load_suite("smoke"), RecordStore(own_runs / "records"))
    assert 0 < len(plan.done) < len(plan.wanted)

    again = frugalbench("run", "smoke")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {p: p.read_bytes() for p in kept} == kept
    plan = make_plan(load_suite("smoke"), RecordStore(own_runs / "records"))
    assert len(plan.done) == len(plan.wanted)
