"""What a report looks at: a suite's planned points joined with the records that are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import MODELS
from benchmarks.data.card import find_card
from benchmarks.paths import resource_dir
from benchmarks.reporting.text import axis_text
from benchmarks.reporting.variant import Variant
from benchmarks.statistics.intervals import Interval, paired_t

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.data.card import Card, Yardstick
    from benchmarks.planning.expand import PlannedPoint, Use
    from benchmarks.records import Record, Value
    from benchmarks.results import ResultSet


class View:
    """Look-ups over one `ResultSet`; failed records count as absent here.

    Args:
        results: what `benchmarks.results.collect` returned.
        reference: whether the report is to be committed.
    """

    def __init__(self, results: ResultSet, *, reference: bool = False) -> None:
        self.results = results
        self.reference = reference
        self.suite = results.expansion.suite
        self.ok = [record for record in results.records if record.status == "ok"]
        self._records = {(r.point_id, r.meter, r.baseline_point_id): r for r in self.ok}
        self._arrays: dict[tuple[str, str], pd.DataFrame | None] = {}
        self._cards: dict[str, Card] = {}

    def card(self, dataset: str) -> Card:
        """The card of a data set as it stands here: locked or mirrored, if it is."""
        if dataset not in self._cards:
            self._cards[dataset] = find_card(dataset)
        return self._cards[dataset]

    def may_show(self, dataset: str) -> bool:
        """Whether single texts or images may stand in the report.

        In one that is to be committed only if the card says so.
        """
        return self.card(dataset).texts_may_be_shown or not self.reference

    def name(self, dataset: str) -> str:
        """What results on a data set are called: as their records say, else as the card here says.

        A mirror's set has a name of its own.
        """
        return self._names.get(dataset) or self.card(dataset).run_name

    @property
    def suite_argument(self) -> str:
        """What commands call the suite: its name, or the path of a suite from elsewhere."""
        ours = resource_dir("suites") / f"{self.suite.name}.toml"
        return self.suite.name if self.suite.path == ours else self.suite.shown_path

    def called(self, teacher: Variant) -> str:
        """A teacher's label, with its place on the axes where it shares the label with others.

        E.g. "sparse, keep_ratio 0.8".
        """
        alike = self._alike(teacher)
        axes = [
            axis_text(name, value)
            for name, value in teacher.axes.items()
            if name != "max_length" and any(v.axes.get(name, value) != value for v in alike)
        ]
        return ", ".join([teacher.label, *axes])

    def size_of(self, variant: Variant) -> str:
        """E.g. ", at 16 x 16 pixels", where the suite has its label at several sizes; else empty."""
        sizes = {v.points[0].point.max_length for v in self._alike(variant)}
        own = variant.points[0].point.max_length
        unit = f"{own} x {own} pixels" if variant.reads_images else f"{own} tokens"
        return f", at {unit}" if len(sizes) > 1 else ""

    def _alike(self, variant: Variant) -> list[Variant]:
        """The variants that share its label and data set, itself among them."""
        same = (variant.label, variant.dataset)
        return [v for v in self.variants if (v.label, v.dataset) == same]

    def inputs_of(self, variant: Variant) -> str:
        """What results on a variant's data set are called, with the size where it tells them apart."""
        return f"{self.name(variant.dataset)}{self.size_of(variant)}"

    @cached_property
    def _names(self) -> dict[str, str]:
        found: dict[str, set[str]] = defaultdict(set)
        for record in self.ok:
            if record.data is not None:
                found[record.point["dataset"]].add(record.data.name)
        return {dataset: " and ".join(sorted(names)) for dataset, names in found.items()}

    def yardsticks(self, dataset: str) -> tuple[Yardstick, ...]:
        """The card's; none for a mirror's set, on which they were not measured."""
        return self.card(dataset).yardsticks if self.name(dataset) == dataset else ()

    @cached_property
    def variants(self) -> list[Variant]:
        """All variants that are measured, in the suite's order; one for each sweep it stands in."""
        groups: dict[tuple[str, str, str], list[tuple[PlannedPoint, Use]]] = defaultdict(list)
        for planned in self.results.expansion.points:
            if planned.meters:
                for use in planned.uses:
                    groups[use.sweep, use.label, planned.point.group_id].append((planned, use))
        return [
            Variant(
                sweep=sweep,
                label=label,
                dataset=members[0][0].point.dataset,
                axes={k: v for k, v in members[0][1].axes.items() if k != "seed"},
                points=tuple(planned for planned, _ in members),
            )
            for (sweep, label, _), members in groups.items()
        ]

    @cached_property
    def main(self) -> dict[str, list[Variant]]:
        """Trained variants without axes, by data set, each label once: the main tables.

        Students have tables of their own, by the layers replaced.
        """
        plain: dict[str, dict[tuple[str, str], Variant]] = defaultdict(dict)
        for variant in self.variants:
            if variant.trained and not variant.axes and not variant.is_student:
                plain[variant.dataset].setdefault((variant.group_id, variant.label), variant)
        return {dataset: list(found.values()) for dataset, found in plain.items()}

    @cached_property
    def studies(self) -> dict[tuple[str, str], list[Variant]]:
        """Trained variants of sweeps with axes, by (sweep, data set)."""
        found: dict[tuple[str, str], list[Variant]] = defaultdict(list)
        for variant in self.variants:
            if variant.trained and variant.axes and not variant.is_student:
                found[variant.sweep, variant.dataset].append(variant)
        return dict(found)

    @cached_property
    def costs(self) -> dict[str, list[Variant]]:
        """Untrained variants, by sweep: cost only; those of hybrids are `hybrids`."""
        return {name: found for name, found in self._untrained.items() if not _replaces(found)}

    @cached_property
    def hybrids(self) -> dict[str, list[Variant]]:
        """Untrained variants of the sweeps that replace attention, by sweep."""
        return {name: found for name, found in self._untrained.items() if _replaces(found)}

    @cached_property
    def _untrained(self) -> dict[str, list[Variant]]:
        found: dict[str, list[Variant]] = defaultdict(list)
        for variant in self.variants:
            if not variant.trained:
                found[variant.sweep].append(variant)
        return dict(found)

    @cached_property
    def labels(self) -> list[str]:
        """Labels of the trained variants, baselines first and students last: the order of colours."""
        trained = sorted((v for v in self.variants if v.trained), key=lambda v: v.is_student)
        ordered = [v.label for v in trained if v.is_baseline]
        ordered += [v.label for v in trained]
        return list(dict.fromkeys(ordered))

    def record(self, planned: PlannedPoint, meter: str) -> Record | None:
        """The record of one point (of a pair: with its baseline)."""
        point_id = planned.point.point_id
        other = planned.baseline.point_id if planned.baseline else None
        return self._records.get((point_id, meter, None)) or self._records.get(
            (point_id, meter, other)
        )

    def records(self, variant: Variant, meter: str) -> list[Record]:
        """The records of all its seeds that are there."""
        found = (self.record(planned, meter) for planned in variant.points)
        return [record for record in found if record is not None]

    def first(self, variant: Variant, meter: str) -> Record | None:
        """The record of the first seed that has one."""
        return next(iter(self.records(variant, meter)), None)

    def values(
        self, variant: Variant, meter: str, name: str, **context: float | str
    ) -> dict[int, Value]:
        """The values called `name`, by seed."""
        found = {r.seed: r.get(name, **context) for r in self.records(variant, meter)}
        return {seed: value for seed, value in found.items() if value is not None}

    def mean(self, variant: Variant, meter: str, name: str, **context: float | str) -> float | None:
        """Mean over the seeds that are there; None where there is none."""
        values = [v.value for v in self.values(variant, meter, name, **context).values()]
        return sum(values) / len(values) if values else None

    def baseline(self, variant: Variant) -> Variant | None:
        """The variant this one is paired with."""
        paired = [p.baseline for p in variant.points if p.baseline is not None]
        if not paired:
            return None
        wanted = paired[0].group_id
        same = [v for v in self.variants if v.group_id == wanted]
        return next((v for v in same if v.sweep == variant.sweep), same[0] if same else None)

    def difference(self, variant: Variant, other: Variant, name: str) -> Interval | None:
        """Mean difference of an accuracy value, paired over the seeds that both have.

        Returns:
            Student's t interval from two seeds on; with one seed an interval of no width whose
            method is "single"; None without a common seed.
        """
        ours, theirs = (self.values(v, "accuracy", name) for v in (variant, other))
        both = [ours[s].value - theirs[s].value for s in ours if s in theirs]
        if not both:
            return None
        if len(both) == 1:
            return Interval(both[0], both[0], both[0], "single", 0.0, 1)
        return paired_t(both)

    def asks(self, variants: Sequence[Variant], meter: str) -> bool:
        """Whether the suite asks this meter of any of the variants."""
        return any(meter in planned.meters for v in variants for planned in v.points)

    def promised(self, variant: Variant, batch_size: int | None = None) -> float | None:
        """Speed-up that the MACs promise, on the inputs that were timed (default: largest batch).

        Before anything was timed: baseline's mean over the test inputs by the variant's, first seed
        with both.
        """
        timed = self.first(variant, "latency")
        promises = [
            v
            for v in (timed.values if timed else ())
            if v.name == "promised_speedup" and batch_size in {None, v.context["batch_size"]}
        ]
        if promises:
            return max(promises, key=lambda v: int(v.context["batch_size"])).value
        base = self.baseline(variant)
        if base is None:
            return None
        ours = self.values(variant, "flops", "macs", stat="mean")
        theirs = self.values(base, "flops", "macs", stat="mean")
        return next((theirs[s].value / ours[s].value for s in ours if s in theirs), None)

    @cached_property
    def batch_sizes(self) -> list[int]:
        """Batch sizes at which trained variants were timed, in order; 1 and 32 before any was."""
        return self.timed_at([v for v in self.variants if v.trained]) or [1, 32]

    def timed_at(self, variants: Sequence[Variant]) -> list[int]:
        """Batch sizes at which any of these was timed against its baseline, in order."""
        return self.batch_sizes_of(variants, "latency", "speedup")

    def batch_sizes_of(self, variants: Sequence[Variant], meter: str, name: str) -> list[int]:
        """Batch sizes at which any of these has a value of that name, in order."""
        sizes = {
            int(value.context["batch_size"])
            for variant in variants
            for record in self.records(variant, meter)
            for value in record.values
            if value.name == name
        }
        return sorted(sizes)

    def arrays(self, planned: PlannedPoint, meter: str) -> pd.DataFrame | None:
        """Per-example arrays of one record, read once."""
        key = (planned.point.point_id, meter)
        if key not in self._arrays:
            record = self.record(planned, meter)
            there = record is not None and record.arrays is not None
            self._arrays[key] = self.results.arrays(record) if record and there else None
        return self._arrays[key]

    def config(self, variant: Variant) -> dict[str, Any]:
        """The model's configuration as built, from any of its records; else the declared values."""
        for planned in variant.points:
            for record in self._of_point(planned.point.point_id):
                if record.resolved:
                    return record.resolved
        return dict(variant.points[0].point.params)

    def resolved(self, planned: PlannedPoint) -> dict[str, Any]:
        """One seed's configuration as built; empty before it was."""
        records = self._of_point(planned.point.point_id)
        return next((dict(record.resolved) for record in records if record.resolved), {})

    def plans(self, variants: Sequence[Variant], *meters: str) -> bool:
        """Whether the suite asks any of these meters about any of these variants."""
        return any(set(meters) & set(p.meters) for v in variants for p in v.points)

    def place(self, record: Record) -> str:
        """What a record is about, told apart from every other: label, data set, axes, seed."""
        planned = self._planned.get(record.point_id)
        use = planned.uses[0] if planned else None
        on = record.data.name if record.data else self.name(record.point["dataset"])
        parts = [f"`{use.label if use else record.label}` on {on}"]
        images = MODELS.get(record.point["model"]).inputs == "image"
        parts += [
            axis_text(name, value, images=images)
            for name, value in (use.axes.items() if use else ())
            if name != "seed"
        ]
        if planned is None or planned.point.trained:
            parts.append(f"seed {record.seed}")
        return ", ".join(parts)

    def sweeps_of(self, point_id: str) -> list[str]:
        """Names of the sweeps in which a point stands."""
        planned = self._planned.get(point_id)
        return list(dict.fromkeys(use.sweep for use in planned.uses)) if planned else []

    @cached_property
    def _planned(self) -> dict[str, PlannedPoint]:
        return {p.point.point_id: p for p in self.results.expansion.points}

    def failures(self) -> Sequence[Record]:
        """Records of failed measurements."""
        return self.results.failed

    def _of_point(self, point_id: str) -> list[Record]:
        return self._by_point.get(point_id, [])

    @cached_property
    def _by_point(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self._records.values():
            found[record.point_id].append(record)
        return found


def _replaces(variants: Sequence[Variant]) -> bool:
    return any("replace" in MODELS.get(v.model).declarable() for v in variants)
