"""Joins each student with its teacher: what was replaced, what it lost, what those layers are worth."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.statistics.intervals import Interval, paired_t
from models.distillation import OPTIONS
from models.mixers import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.records import Record
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

DELETED = "identity"
"""The kind of replacement that leaves nothing in attention's place."""


@dataclass(frozen=True)
class Student:
    """A variant that was distilled from a teacher.

    Attributes:
        variant: the student.
        teacher: the variant that it was built on.
        replaced: its layers without attention, counted from 0; empty: the teacher, trained on.
        mixer: what stands in attention's place.
        depth: layers there are.
        samples: how many it was trained on.
        name: what tables call it: its mixer, or its label where several have the same mixer there; and
            its samples, where most others of the suite have another number.
    """

    variant: Variant
    teacher: Variant
    replaced: tuple[int, ...]
    mixer: str
    depth: int
    samples: int
    name: str

    @property
    def is_last(self) -> bool:
        """Whether all replaced layers stand at the end."""
        return self.replaced == tuple(range(self.depth - len(self.replaced), self.depth))


@dataclass(frozen=True)
class Deletion:
    """What deleting the attention of some layers costs, without any training.

    Attributes:
        layers: counted from 0.
        group: the record's name for several layers; empty for one.
        drop: validation accuracy lost; over seeds from two on, else over inputs.
        margin: a drop below it says that a replacement there can show nothing.
    """

    layers: tuple[int, ...]
    group: str
    drop: Interval
    margin: float

    @property
    def informative(self) -> bool:
        """Whether the margin or more is lost."""
        return self.drop.estimate >= self.margin

    @property
    def unclear(self) -> bool:
        """Whether the interval holds the margin."""
        return self.drop.low < self.margin <= self.drop.high


def replaced_of(variant: Variant) -> tuple[int, ...]:
    """The layers that a variant declares as replaced, trained or not."""
    return tuple(variant.points[0].point.params.get("replace", ()))


def mixer_of(variant: Variant) -> str:
    """What stands there: its kind, and the options that are not as usual."""
    params = variant.points[0].point.params
    kind = str(params.get("mixer", MODELS.get(variant.model).declarable()["mixer"]))
    return names.label(kind, {name: params[name] for name in OPTIONS if name in params})


def students(view: View) -> list[Student]:
    """All students with a teacher in the suite, in its order; each once."""
    by_group = {v.group_id: v for v in reversed(view.variants)}
    found: dict[str, Student] = {}
    for variant in view.variants:
        source = variant.points[0].point.source
        teacher = by_group.get(source.group_id) if source and variant.is_student else None
        if teacher is not None:
            mixer = mixer_of(variant)
            depth = int(view.config(teacher).get("depth") or _declared(teacher, "depth"))
            samples = _declared(variant, "samples")
            student = Student(variant, teacher, replaced_of(variant), mixer, depth, samples, mixer)
            found.setdefault(variant.group_id, student)
    return _named(list(found.values()))


def _named(found: Sequence[Student]) -> list[Student]:
    places = Counter((s.teacher.group_id, s.replaced, s.mixer, s.samples) for s in found)
    shared = {mixer for (_, _, mixer, _), n in places.items() if n > 1}
    named = [replace(s, name=s.variant.label) if s.mixer in shared else s for s in found]
    usual = usual_samples(found)
    return [
        s if s.samples == usual else replace(s, name=f"{s.name}, {s.samples:,} samples")
        for s in named
    ]


def usual_samples(found: Sequence[Student]) -> int:
    """How many samples most of these students were trained on; 0 where there is none."""
    return max(Counter(s.samples for s in found).items(), key=lambda n: n[1], default=(0, 0))[0]


def teachers(view: View) -> list[Variant]:
    """What the students were built on, and whatever else was looked at layer by layer."""
    of_students = [s.teacher for s in students(view)]
    looked_at = [
        v
        for v in view.variants
        if not v.is_student and v.trained and view.plans([v], "sparsity", "deletion")
    ]
    found: dict[str, Variant] = {}
    for variant in (*of_students, *looked_at):
        found.setdefault(variant.group_id, variant)
    return list(found.values())


def drop(view: View, student: Student) -> Interval | None:
    """Test accuracy lost against the teacher, paired over seeds; positive: lost."""
    return view.difference(student.teacher, student.variant, "accuracy")


def continued(found: Sequence[Student], student: Student) -> Student | None:
    """The student of the same teacher that replaces nothing, trained on for as many samples."""
    return next((s for s in _controls(found, student) if not s.replaced), None)


def emptied(found: Sequence[Student], student: Student) -> Student | None:
    """The student with nothing in the place of the same layers of the same teacher."""
    return next(
        (
            s
            for s in _controls(found, student)
            if s.replaced == student.replaced
            and s.mixer == DELETED
            and s.variant != student.variant
        ),
        None,
    )


def _controls(found: Sequence[Student], student: Student) -> list[Student]:
    """Those of the same teacher on as many samples, which alone can be compared."""
    return [s for s in found if (s.teacher, s.samples) == (student.teacher, student.samples)]


def per_layer(view: View, variant: Variant, meter: str, name: str, **context: str) -> list[float]:
    """Mean over seeds of a value that has a `layer` in its context, by layer; not a number: none."""
    sums: dict[int, list[float]] = defaultdict(list)
    for record in view.records(variant, meter):
        for value in record.values:
            layer = value.context.get("layer")
            rest = {k: v for k, v in value.context.items() if k != "layer"}
            if value.name == name and layer is not None and rest == context:
                sums[int(layer)].append(value.value)
    depth = max(sums, default=-1) + 1
    nothing = float("nan")
    return [sum(v) / len(v) if (v := sums.get(layer)) else nothing for layer in range(depth)]


def deletions(view: View, teacher: Variant) -> dict[tuple[int, ...], Deletion]:
    """What was deleted of a teacher, by layers: single ones first, then groups."""
    drops: dict[tuple[tuple[int, ...], str], list[Interval]] = defaultdict(list)
    margin = 0.0
    for record in view.records(teacher, "deletion"):
        margin = float(record.info["margin"])
        for layers, group, found in _drops(record):
            drops[layers, group].append(found)
    return {
        layers: Deletion(layers, group, _over_seeds(found), margin)
        for (layers, group), found in drops.items()
    }


def _drops(record: Record) -> list[tuple[tuple[int, ...], str, Interval]]:
    found = []
    for value in record.values:
        if value.name != "accuracy_drop":
            continue
        if "layer" in value.context:
            layers: tuple[int, ...] = (int(value.context["layer"]),)
        else:
            first, last = str(value.context["layers"]).split("-")
            layers = tuple(range(int(first), int(last) + 1))
        low, high = (value.value if end is None else end for end in (value.low, value.high))
        interval = Interval(value.value, low, high, value.method or "single", 0.95, value.n or 0)
        found.append((layers, str(value.context.get("group", "")), interval))
    return found


def _over_seeds(found: Sequence[Interval]) -> Interval:
    return found[0] if len(found) == 1 else paired_t([interval.estimate for interval in found])


def _declared(variant: Variant, name: str) -> int:
    params = variant.points[0].point.params
    return int(params.get(name, MODELS.get(variant.model).declarable()[name]))
