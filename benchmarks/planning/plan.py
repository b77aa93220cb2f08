"""An ordered graph of tasks: what is done, what remains, and about how long it takes. Torch-free.

Stages run one after the other, so that a complete single-seed report exists early. Inside a stage
the points that may run side by side come first; then the meters that need the machine alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import METERS
from benchmarks.errors import UsageError, suggest
from benchmarks.planning.estimate import PROCESS_START_S, meter_seconds, training_seconds
from benchmarks.planning.expand import Expansion, PlannedPoint, expand
from benchmarks.planning.keys import record_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.meters.interface import MeterSpec
    from benchmarks.planning.points import Point
    from benchmarks.planning.suite import Suite
    from benchmarks.records import Key, Record
    from benchmarks.running.store import RecordStore

ITEMS_PER_SAMPLE = 8
"""Pairs or points that one fresh process measures in turn; bounds what a kill can lose."""
ID_PREFIX = 6
"""Letters of a point's id that `only` takes for the whole of it."""


@dataclass(frozen=True)
class Measurable:
    """One record to be: a meter, the point it measures, what it is paired with, and its key."""

    meter: MeterSpec
    planned: PlannedPoint
    baseline: Point | None
    key: Key
    options: Mapping[str, Any]

    @property
    def point(self) -> Point:
        """The point (of a pair: the candidate)."""
        return self.planned.point

    @property
    def address(self) -> tuple[str, str, str, str | None]:
        """Where a `RecordStore` keeps the record with exactly this key."""
        other = self.baseline.point_id if self.baseline else None
        return self.point.point_id, self.meter.name, self.key.cache_key, other

    def existing(self, store: RecordStore) -> Record | None:
        """The stored record with exactly this key, failed or not."""
        return store.find(*self.address)

    def is_done(self, store: RecordStore) -> bool:
        """Whether that record is there and did not fail."""
        return store.exists(*self.address)


@dataclass(frozen=True)
class PointTask:
    """Train one point if it has to be, then measure it with what may run side by side."""

    task_id: str
    stage: int
    point: Point
    records: tuple[Measurable, ...]
    needs: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class SampleTask:
    """One fresh process that has the machine to itself and samples several records in turn."""

    task_id: str
    stage: int
    meter: MeterSpec
    records: tuple[Measurable, ...]
    replicate: int
    needs: tuple[str, ...]
    seconds: float


@dataclass
class Plan:
    """What a suite asks for, against what a store holds.

    Attributes:
        expansion: the suite's points.
        wanted: every record the suite wants, in order.
        done: those that are stored under their present key.
        failed: stored failures, to be tried again.
        point_tasks, sample_tasks: what remains.
    """

    expansion: Expansion
    wanted: list[Measurable]
    done: list[Measurable]
    failed: list[Record]
    point_tasks: list[PointTask] = field(default_factory=list)
    sample_tasks: list[SampleTask] = field(default_factory=list)

    @property
    def stages(self) -> list[int]:
        """The stages that still have work, in order."""
        return sorted({t.stage for t in self.point_tasks} | {t.stage for t in self.sample_tasks})

    def seconds(self, jobs: int) -> float:
        """Estimated wall time of what remains, with `jobs` side by side."""
        beside = sum(t.seconds for t in self.point_tasks) / max(1, jobs)
        return beside + sum(t.seconds for t in self.sample_tasks)


def wanted_records(expansion: Expansion) -> Iterator[Measurable]:
    """Every record that a suite wants: each point with each of its meters, each pair once."""
    suite = expansion.suite
    first: dict[str, int] = {}
    for planned in expansion.points:
        group = planned.point.group_id
        first[group] = min(first.get(group, planned.stage), planned.stage)
    measured: set[tuple[str, ...]] = set()
    for planned in expansion.points:
        for name in planned.meters:
            spec = METERS.get(name)
            if spec.first_seed_only and planned.stage != first[planned.point.group_id]:
                continue
            if spec.kind == "pair" and planned.baseline is None:
                continue
            if spec.needs_training and not planned.point.trained:
                continue
            if spec.of_data:
                inputs = (name, *planned.point.inputs)
                if inputs in measured:
                    continue
                measured.add(inputs)
            baseline = planned.baseline if spec.kind == "pair" else None
            options = suite.options_for(_asking(suite, planned, name), name)
            key = record_key(planned.point, spec, options, baseline)
            yield Measurable(spec, planned, baseline, key, options)


def _asking(suite: Suite, planned: PlannedPoint, meter: str) -> str:
    """The first sweep that wants a meter of a point, which may stand in others before it."""
    wanting = {sweep.name for sweep in suite.sweeps if meter in sweep.meters}
    return next(use.sweep for use in planned.uses if use.sweep in wanting)


def make_plan(
    suite: Suite,
    store: RecordStore,
    *,
    only: Sequence[str] = (),
    without: Collection[str] = (),
) -> Plan:
    """Plans a suite against a store.

    Args:
        suite: a validated suite.
        store: where finished records lie.
        only: keep only points whose label, data set, model, sweep or point id, or the beginning of
            that, is among these.
        without: data sets to leave out.

    Raises:
        InvalidFileError: a combination that its model refuses.
        UsageError: a word of `only` that no point of the suite goes by.
    """
    expansion = expand(suite)
    _require_names(expansion, only)
    wanted = [
        m
        for m in wanted_records(expansion)
        if _selected(m.planned, only) and m.point.dataset not in without
    ]
    done: list[Measurable] = []
    missing: list[Measurable] = []
    failed: list[Record] = []
    for measurable in wanted:
        record = measurable.existing(store)
        if record is not None and record.status == "ok":
            done.append(measurable)
        else:
            missing.append(measurable)
            if record is not None:
                failed.append(record)
    plan = Plan(expansion, wanted, done, failed)
    plan.point_tasks = _point_tasks(expansion, missing)
    plan.sample_tasks = _sample_tasks(missing, {t.task_id for t in plan.point_tasks})
    return plan


def _selected(planned: PlannedPoint, only: Sequence[str]) -> bool:
    return not only or any(_means(word, _names(planned)) for word in only)


def _means(word: str, names: Sequence[str]) -> bool:
    """Whether a point that goes by `names` is meant by `word`."""
    return word in names or (len(word) >= ID_PREFIX and names[-1].startswith(word))


def _names(planned: PlannedPoint) -> list[str]:
    """What a point goes by in `only`, wherever in the suite it stands; its id comes last."""
    point = planned.point
    places = [name for use in planned.uses for name in (use.label, use.sweep)]
    return [*places, point.model, point.dataset, point.point_id]


def _require_names(expansion: Expansion, only: Sequence[str]) -> None:
    names = [_names(planned) for planned in expansion.points]
    for word in only:
        if not any(_means(word, own) for own in names):
            known = {name for own in names for name in own[:-1]}
            raise UsageError(
                f"--only: {suggest(word, known, kind='label, data set, model or sweep')} `frugalbench "
                f"plan` lists the points' ids, of which the first {ID_PREFIX} letters will do."
            )


def _point_tasks(expansion: Expansion, missing: Sequence[Measurable]) -> list[PointTask]:
    """One task for each point with something missing, sources before the points they serve."""
    by_point: dict[str, list[Measurable]] = defaultdict(list)
    stage: dict[str, int] = {}
    points: dict[str, Point] = {}
    for measurable in missing:
        point = measurable.point
        points[point.point_id] = point
        stage[point.point_id] = min(
            stage.get(point.point_id, measurable.planned.stage), measurable.planned.stage
        )
        if not measurable.meter.exclusive:
            by_point[point.point_id].append(measurable)
        if measurable.baseline is not None:
            points.setdefault(measurable.baseline.point_id, measurable.baseline)
            stage.setdefault(measurable.baseline.point_id, measurable.planned.stage)
    waiting = list(points.values())
    while waiting:
        point = waiting.pop()
        for need in point.needs:
            points.setdefault(need.point_id, need)
            stage[need.point_id] = min(
                stage.get(need.point_id, stage[point.point_id]), stage[point.point_id]
            )
            waiting.append(need)
    order = {planned.point.point_id: i for i, planned in enumerate(expansion.points)}
    tasks: list[PointTask] = []
    for point_id in sorted(points, key=lambda i: (stage[i], order.get(i, -1))):
        point = points[point_id]
        records = tuple(by_point[point_id])
        if not records and not point.trained:
            continue
        tasks.append(
            PointTask(
                task_id=point_id,
                stage=stage[point_id],
                point=point,
                records=records,
                needs=tuple(need.point_id for need in point.needs),
                seconds=training_seconds(point)
                + sum(meter_seconds(m.meter, point, m.options) for m in records),
            )
        )
    return tasks


def _sample_tasks(missing: Sequence[Measurable], known: set[str]) -> list[SampleTask]:
    groups: dict[tuple[int, str, str, str], list[Measurable]] = defaultdict(list)
    for m in missing:
        if m.meter.exclusive:
            groups[m.planned.stage, m.meter.name, m.planned.sweep, m.point.dataset].append(m)
    tasks: list[SampleTask] = []
    for (stage, name, sweep, dataset), items in sorted(groups.items()):
        for start in range(0, len(items), ITEMS_PER_SAMPLE):
            chunk = tuple(items[start : start + ITEMS_PER_SAMPLE])
            meter = chunk[0].meter
            needs = {m.point.point_id for m in chunk}
            needs |= {m.baseline.point_id for m in chunk if m.baseline}
            seconds = sum(meter_seconds(meter, m.point, m.options) for m in chunk)
            tasks.extend(
                SampleTask(
                    task_id=f"{name}-{sweep}-{dataset}-{stage}-{start}-{replicate}",
                    stage=stage,
                    meter=meter,
                    records=chunk,
                    replicate=replicate,
                    needs=tuple(sorted(needs & known)),
                    seconds=PROCESS_START_S + seconds,
                )
                for replicate in range(int(chunk[0].options.get("n_processes", meter.replicates)))
            )
    return tasks
