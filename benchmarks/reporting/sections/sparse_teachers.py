"""Whether sparse teachers narrow the gap to their students: a table, and the verdict on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.sparse_teachers import course, kept, sparse_teachers
from benchmarks.reporting.students import drop
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    difference_text,
    gap_cell,
    gap_text,
    layers_text,
    percent,
    table,
)

if TYPE_CHECKING:
    from benchmarks.reporting.sparse_teachers import SparseTeacher
    from benchmarks.reporting.students import Student
    from benchmarks.reporting.view import View
    from benchmarks.statistics.intervals import Interval

SPARSE_TEACHER_NOTE = (
    "Patches kept: share, mean over layers; wanted before fine-tuning, reached on the validation split. "
    "Gap: the teacher's test accuracy less its student's; narrower and better: against the pair of "
    "the teacher named beside it, with the same module in the same layers, paired over seeds, with a 95 % t "
    "interval from two seeds on. A gap can narrow because the teacher got worse, so the student's own "
    "accuracy says whether anything is won. The column of tenths is the student's validation accuracy after "
    "so many tenths of its samples (stage 1, in which only the new modules are trained, comes first): "
    "whether it learns faster; the figure of the course shows all ten."
)
TRAINED_LONGER_NOTE = (
    " Halting is trained after the plain teacher is done, so where these two are compared the difference "
    "is that of halting and of longer training together."
)


def sparse_teacher_section(view: View) -> str:
    """Students of halting teachers beside those of teachers that drop nothing; empty without any."""
    found = sparse_teachers(view)
    if not found:
        return ""
    rows = []
    paired = {pair.sparse.variant.group_id for pair in found}
    plains = {p.plain.variant.group_id: p.plain for p in found}
    for plain in plains.values():
        if plain.variant.group_id not in paired:
            rows.append([*_pair(view, plain), *[NOT_APPLICABLE] * 3])
        rows += [
            [
                *_pair(view, pair.sparse),
                f"`{view.called(plain.teacher)}`",
                gap_cell(pair.narrowed),
                gap_cell(pair.gained),
            ]
            for pair in found
            if pair.plain == plain
        ]
    headers = [
        "teacher", "patches kept: wanted, reached", "replaced", "teacher (%)", "student (%)",
        "gap (points)", "against", "gap narrower by (points)", "student better by (points)",
        "validation after 1, 5, 10 tenths (%)",
    ]  # fmt: skip
    rows = [[*row[:6], *row[7:], row[6]] for row in rows]
    longer = any(not pair.plain.teacher.halts_tokens for pair in found)
    return "\n\n".join(
        [
            "### Does a sparse teacher narrow the gap?",
            narrows_the_gap(view),
            table(headers, rows, align="lrlrrrlrrr"),
            SPARSE_TEACHER_NOTE + (TRAINED_LONGER_NOTE if longer else ""),
        ]
    )


def _pair(view: View, student: Student) -> list[str]:
    teacher = student.teacher
    before, after = (view.mean(v, "accuracy", "accuracy") for v in (teacher, student.variant))
    gap = drop(view, student)
    wanted = view.config(teacher).get("keep_ratio") if teacher.halts_tokens else None
    reached = kept(view, teacher)
    shares = [f"{x:.2f}" if x is not None else MISSING for x in (wanted, reached)]
    accuracies = [accuracy for _, accuracy in course(view, student)]
    tenths = [percent(accuracies[i]) for i in (0, 4, 9)] if len(accuracies) > 9 else [MISSING]
    return [
        f"`{view.called(teacher)}`",
        "all" if not teacher.halts_tokens else ", ".join(shares),
        f"{layers_text(student.replaced)} by `{student.name}`",
        *(percent(a) if a is not None else MISSING for a in (before, after)),
        gap_cell(gap),
        ", ".join(tenths),
    ]


def narrows_the_gap(view: View) -> str:
    """The paper's second reading, judged over seeds; empty where nothing was measured."""
    told = [
        _narrowing(view, pair, pair.narrowed, pair.gained)
        for pair in sparse_teachers(view)
        if pair.narrowed and pair.gained
    ]
    if not told:
        return ""
    return f'"A sparse teacher narrows the gap": {"; ".join(told)}.'


def _narrowing(view: View, pair: SparseTeacher, gap: Interval, gained: Interval) -> str:
    of = (
        f"the gap of `{pair.sparse.variant.label}` to `{view.called(pair.sparse.teacher)}` against that "
        f"of `{pair.plain.variant.label}` to `{view.called(pair.plain.teacher)}`:"
    )
    if gap.method == "single":
        return f"{of} narrower by {gap_text(gap)} points, on one seed, which decides nothing"
    word = "shown" if gap.low > 0 else "the opposite is shown" if gap.high < 0 else "not shown"
    return (
        f"{of} {word}, narrower by {gap_text(gap)} points; accuracy of the student itself "
        f"{difference_text(gained)}"
    )
