"""Whether a teacher that halts tokens has students nearer to it than the plain teacher has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.reporting.students import students
from benchmarks.statistics.intervals import Interval, paired_t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


@dataclass(frozen=True)
class SparseTeacher:
    """A student of a halting teacher beside that of a teacher that drops nothing.

    Attributes:
        plain, sparse: the two students, with the same module in the same layers. The plain one's
            teacher is the halting one that was made to keep everything, and fine-tuned as long, where
            the suite has it; else, and for that one itself, the teacher that both started from.
        narrowed: the plain pair's gap (teacher less student, test accuracy) less the sparse pair's,
            paired over seeds; positive: the gap is narrower.
        gained: accuracy of the sparse teacher's student less that of the plain one's.
    """

    plain: Student
    sparse: Student
    narrowed: Interval | None
    gained: Interval | None


def sparse_teachers(view: View) -> list[SparseTeacher]:
    """Every such pair of students, in the suite's order."""
    found = students(view)
    pairs = []
    for sparse in found:
        base = _started(sparse.teacher)
        if base is None or not sparse.teacher.halts_tokens:
            continue
        alike = [s for s in found if (s.replaced, s.name) == (sparse.replaced, sparse.name)]
        of_all = [s for s in alike if _keeps_all(s.teacher, sparse.teacher)]
        of_base = [s for s in alike if s.teacher.group_id == base]
        own = of_base if sparse in of_all else of_all + of_base
        if own:
            narrowed = _narrowed(view, own[0], sparse)
            gained = view.difference(sparse.variant, own[0].variant, "accuracy")
            pairs.append(SparseTeacher(own[0], sparse, narrowed, gained))
    return pairs


def _keeps_all(teacher: Variant, sparse: Variant) -> bool:
    """Whether the one differs from the other in keeping all tokens, and in nothing else."""
    if not teacher.halts_tokens or _started(teacher) != _started(sparse):
        return False
    ours, theirs = (dict(v.points[0].point.params) for v in (teacher, sparse))
    theirs["keep_ratio"] = 1
    return ours == theirs


def _started(teacher: Variant) -> str | None:
    """`group_id` of the model that its weights started from, if they did."""
    base = teacher.points[0].point.base
    return None if base is None else base.group_id


def kept(view: View, teacher: Variant) -> float | None:
    """Share of the patches that a teacher keeps, mean over layers and seeds; 1 if it halts none."""
    ratio = view.mean(teacher, "sparsity", "keep_ratio", tokens="patches")
    if ratio is None and view.records(teacher, "sparsity") and not teacher.halts_tokens:
        return 1.0
    return ratio


def _narrowed(view: View, plain: Student, sparse: Student) -> Interval | None:
    before, after = (_gaps(view, student) for student in (plain, sparse))
    both = [before[seed] - after[seed] for seed in before if seed in after]
    if not both:
        return None
    return single(both[0]) if len(both) == 1 else paired_t(both)


def _gaps(view: View, student: Student) -> dict[int, float]:
    """Teacher's accuracy less the student's, by seed."""
    theirs = view.values(student.teacher, "accuracy", "accuracy")
    ours = view.values(student.variant, "accuracy", "accuracy")
    return {seed: theirs[seed].value - ours[seed].value for seed in theirs if seed in ours}


def single(value: float) -> Interval:
    """One seed's value, as an interval of no width."""
    return Interval(value, value, value, "single", 0.0, 1)


def course(view: View, student: Student) -> list[tuple[float, float]]:
    """(samples, mean validation accuracy over seeds) after each part of a student's samples."""
    courses: Sequence[list[tuple[float, float]]] = [
        list(zip(r.series["samples"], r.series["validation_accuracy"], strict=True))
        for r in view.records(student.variant, "training")
        if "samples" in r.series
    ]
    return [
        (parts[0][0], sum(accuracy for _, accuracy in parts) / len(parts))
        for parts in zip(*courses, strict=False)
    ]
