"""From a measurement, or a failure, to a record that stands on its own and names nobody."""

from __future__ import annotations

import datetime
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.paths import CHECKOUT, cache_dir, runs_dir
from benchmarks.records import Failure, Record
from benchmarks.running.environment import describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.meters.interface import Measurement
    from benchmarks.planning.plan import Measurable

BASE_LIBRARIES = ("torch", "numpy", "frugalbench")

_ABSOLUTE = re.compile(r"(?<![\w.<>:/])(?:/[\w.+~@%-]+)+/([\w.+~@%-]+)")


def without_paths(text: str) -> str:
    """The text with every absolute path cut to what is inside the checkout, or to its last name."""
    text = text.replace(f"{CHECKOUT}/", "").replace(f"{sys.prefix}/", "")
    # by name, since a pattern cannot tell where a path with spaces ends
    for folder, name in ((runs_dir(), "runs"), (cache_dir(), "cache")):
        if folder.is_absolute():
            text = text.replace(str(folder), name)
    home = str(Path.home())
    if len(home) > 1:  # a user without a home lives in "/"
        text = text.replace(home, "~")
    return _ABSOLUTE.sub(r"\1", text)


def failure_of(error: BaseException) -> Failure:
    """The failure that a record keeps: type, message and traceback, without absolute paths."""
    trace = "".join(traceback.format_exception(error))
    return Failure(
        type=type(error).__name__,
        message=without_paths(str(error)) or _wordless(error),
        traceback=without_paths(trace),
    )


def _wordless(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory: the suite's sizes or its data set are too large for this machine"
    return type(error).__name__


def make_record(
    measurable: Measurable,
    result: Measurement | Failure,
    *,
    duration_s: float,
    resolved: dict[str, Any] | None = None,
    load_before: float | None = None,
    threads: int = 1,
    libraries: Iterable[str] = (),
) -> Record:
    """One record of what a meter said, or of why it could not say anything.

    Args:
        measurable: what was to be measured, with its key.
        result: the measurement, or the failure.
        duration_s: wall seconds that measuring took.
        resolved: the model's full configuration as built.
        load_before: load average when measuring began.
        threads: torch threads of the measuring process.
        libraries: further distributions whose version belongs to the environment.
    """
    point, baseline = measurable.point, measurable.baseline
    values: dict[str, Any] = {}
    failed = isinstance(result, Failure)
    if isinstance(result, Failure):
        values["failure"] = result
    else:
        values.update(
            values=result.values,
            data=result.data,
            series=result.series,
            info=result.info,
            warnings=result.warnings,
        )
    return Record(
        meter=measurable.meter.name,
        kind=measurable.meter.kind,
        status="failed" if failed else "ok",
        point_id=point.point_id,
        group_id=point.group_id,
        label=point.label,
        seed=point.seed,
        point=point.declared(),
        baseline_point_id=baseline.point_id if baseline else None,
        baseline_label=baseline.label if baseline else None,
        baseline=baseline.declared() if baseline else None,
        resolved=resolved or {},
        weights_seed=point.seed,
        key=measurable.key,
        environment=describe(
            {*BASE_LIBRARIES, *measurable.meter.libraries, *libraries},
            threads=threads,
            load_before=load_before,
        ),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        duration_s=round(duration_s, 3),
        **values,
    )
