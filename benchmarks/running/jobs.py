"""What one worker does: train and measure one point, or give one sample of several records.

This is the only place of the harness that runs models; it knows nothing of processes.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import load_target
from benchmarks.errors import DiskError
from benchmarks.records import Failure
from benchmarks.running.environment import load_average
from benchmarks.running.files import write_atomically
from benchmarks.running.recording import failure_of, make_record
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.meters.interface import Measurement, Subject
    from benchmarks.planning.plan import Measurable, PointTask, SampleTask
    from benchmarks.planning.points import Point

Report = Callable[[Mapping[str, Any]], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        task_id: which task.
        seconds: wall seconds it took.
        failures: what failed, one entry a record.
        blocks: the point has no weights, so nothing that depends on it can run.
        unrecorded: the process died before it could store the failure; the runner does.
    """

    task_id: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    blocks: bool = False
    unrecorded: bool = False


def run_point(task: PointTask, runs: Path, report: Report) -> Outcome:
    """Trains a point if need be, then measures it; each record is stored as soon as it is made.

    A failing meter leaves a failed record and the others go on. A failing training leaves a failed
    record for each meter.

    Raises:
        DiskError: the disk is full or read-only, which no later task would survive either.
    """
    from benchmarks.training.artifacts import ArtifactStore
    from benchmarks.training.prepare import ensure_artifact, prepare_subject

    began = time.perf_counter()
    records, artifacts = RecordStore(runs / "records"), ArtifactStore(runs / "artifacts")
    try:
        if task.point.trained:
            ensure_artifact(task.point, artifacts, report)
        subject = prepare_subject(task.point, artifacts) if task.records else None
    except DiskError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model raises belongs to its point alone
        failure = failure_of(error)
        store_failures(task.records, failure, records)
        return Outcome(task.task_id, time.perf_counter() - began, (failure,), blocks=True)
    failures = []
    for measurable in task.records:
        assert subject is not None  # noqa: S101 - there are records, so there is a subject
        report({"doing": measurable.meter.name})
        failure_or_none = _measure(measurable, subject, records)
        if failure_or_none is not None:
            failures.append(failure_or_none)
    return Outcome(task.task_id, time.perf_counter() - began, tuple(failures))


def _measure(measurable: Measurable, subject: Subject, records: RecordStore) -> Failure | None:
    load, began = load_average(), time.perf_counter()

    def store(result: Measurement | Failure, arrays: pd.DataFrame | None = None) -> None:
        record = make_record(
            measurable,
            result,
            duration_s=time.perf_counter() - began,
            resolved=dataclasses.asdict(subject.model.config),
            load_before=load,
            threads=_threads(),
        )
        records.write(record, arrays)

    try:
        measurement = load_target(measurable.meter.target)(subject, measurable.options)
        store(measurement, measurement.arrays)
        return None
    except DiskError:
        raise
    except Exception as error:  # noqa: BLE001 - kept in the record, with its traceback
        failure = failure_of(error)
    store(failure)
    return failure


def run_sample(task: SampleTask, runs: Path, report: Report) -> Outcome:
    """Gives one sample of each record of a task, in this process alone, and stores the raw samples.

    Raises:
        DiskError: the disk is full or read-only.
    """
    from benchmarks.training.artifacts import ArtifactStore
    from benchmarks.training.prepare import prepare_subject

    began, load = time.perf_counter(), load_average()
    artifacts = ArtifactStore(runs / "artifacts")
    subjects: dict[str, Subject] = {}

    def subject(point: Point) -> Subject:
        if point.point_id not in subjects:
            subjects[point.point_id] = prepare_subject(point, artifacts)
        return subjects[point.point_id]

    meter = load_target(task.meter.target)()
    failures: list[Failure] = []
    for measurable in task.records:
        path = sample_path(runs, measurable, task.replicate)
        if path.is_file():
            continue
        report({"doing": measurable.point.label})
        started = time.perf_counter()
        try:
            baseline = subject(measurable.baseline) if measurable.baseline else None
            candidate = subject(measurable.point)
            (sample,) = meter.sample([(candidate, baseline)], task.replicate, measurable.options)
            content = {
                "sample": sample,
                "resolved": dataclasses.asdict(candidate.model.config),
                "load_before": load,
                "seconds": time.perf_counter() - started,
            }
            text = json.dumps(content)
        except DiskError:
            raise
        except Exception as error:  # noqa: BLE001 - kept in the record, with its traceback
            failure = failure_of(error)
            failures.append(failure)
            seconds = time.perf_counter() - started
            text = json.dumps({"failure": failure.model_dump(), "seconds": seconds})
        write_atomically(path, text.encode())
    return Outcome(task.task_id, time.perf_counter() - began, tuple(failures))


def combine_samples(measurable: Measurable, runs: Path, n_samples: int) -> bool:
    """Makes the record of a replicated meter once all its samples are there; torch-free.

    Returns:
        Whether the record was made (successful or failed).
    """
    paths = [sample_path(runs, measurable, i) for i in range(n_samples)]
    if not all(path.is_file() for path in paths):
        return False
    records = RecordStore(runs / "records")
    try:
        contents = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        seconds = sum(content["seconds"] for content in contents)
        failed = next((c["failure"] for c in contents if "failure" in c), None)
        if failed is not None:
            record = make_record(measurable, Failure.model_validate(failed), duration_s=seconds)
        else:
            record = make_record(
                measurable,
                load_target(measurable.meter.target)().combine(
                    [content["sample"] for content in contents], measurable.options
                ),
                duration_s=seconds,
                resolved=contents[0]["resolved"],
                load_before=contents[0]["load_before"],
            )
        records.write(record)
    except DiskError:
        raise
    except Exception as error:  # noqa: BLE001 - kept in the record, with its traceback
        store_failures([measurable], failure_of(error), records)
    for path in paths:
        path.unlink()
    return True


def sample_path(runs: Path, measurable: Measurable, replicate: int) -> Path:
    """Where one raw sample waits for its fellows."""
    return runs / "samples" / f"{measurable.key.cache_key}-{replicate}.json"


def store_failures(
    measurables: Sequence[Measurable], failure: Failure, records: RecordStore
) -> None:
    """Writes the same failure as the record of each of `measurables`."""
    for measurable in measurables:
        records.write(make_record(measurable, failure, duration_s=0.0))


def _threads() -> int:
    import torch

    return torch.get_num_threads()
