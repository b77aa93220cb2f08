"""What replacing attention came to, in a few plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.sections.layers import which_matter
from benchmarks.reporting.sections.replacement import sparser_cost_less
from benchmarks.reporting.sections.sparse_teachers import narrows_the_gap
from benchmarks.reporting.students import continued, students, teachers
from benchmarks.reporting.text import bounds, difference_text, layers_text, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.records import Value
    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


def student_lines(view: View, dataset: str) -> Iterator[str]:
    """Which layers matter, what last-k students lose, and whether they are faster."""
    found = students(view)
    several = len({s.teacher.group_id for s in found if s.teacher.dataset == dataset}) > 1
    for teacher in teachers(view):
        if teacher.dataset != dataset:
            continue
        if matter := which_matter(view, teacher):
            yield matter
        own = [s for s in found if s.teacher.group_id == teacher.group_id]
        of = f" of `{view.called(teacher)}`" if several else ""
        yield from _lost(view, own, of)
        yield from _time(view, own, of)


def readings(view: View) -> list[str]:
    """The paper's two readings, each with its verdict."""
    return [text for text in (sparser_cost_less(view), narrows_the_gap(view)) if text]


def _last(own: Sequence[Student]) -> dict[tuple[int, ...], list[Student]]:
    """Students whose last layers were replaced, by layers, more than one of them."""
    found: dict[tuple[int, ...], list[Student]] = {}
    for student in sorted(own, key=lambda s: len(s.replaced)):
        if len(student.replaced) > 1 and student.is_last:
            found.setdefault(student.replaced, []).append(student)
    return found


def _lost(view: View, own: Sequence[Student], of: str) -> Iterator[str]:
    """Accuracy against the teacher trained on for as many samples, or else against the teacher."""
    for layers, last in _last(own).items():
        told: dict[str, list[str]] = {}
        for student in last:
            on = continued(own, student)
            against = on.variant if on else student.teacher
            gap = view.difference(student.variant, against, "accuracy")
            if gap is not None:
                told.setdefault(against.label, []).append(
                    f"`{student.name}` {difference_text(gap)}"
                )
        for label, texts in told.items():
            yield (
                f"Accuracy with layers {layers_text(layers)}{of} replaced, against `{label}`: "
                f"{'; '.join(texts)}."
            )


def _time(view: View, own: Sequence[Student], of: str) -> Iterator[str]:
    """Realised beside promised, and where fused attention is faster after all."""
    sizes = view.timed_at([s.variant for s in own])
    for layers, last in _last(own).items():
        told = [text for student in last if (text := _speeds(view, student, sizes))]
        if told:
            base = view.baseline(last[0].variant)
            against = f", against `{base.label}`" if base else ""
            which = f"{layers_text(layers)}{of}"
            text = f"Speed with layers {which} replaced{against}: {'; '.join(told)}."
            yield " ".join([text, *_faster_attention(view, last, sizes)])


def _speeds(view: View, student: Student, sizes: Sequence[int]) -> str:
    parts, promises = [], []
    for size in sizes:
        value = _speedup(view, student.variant, size)
        if value is not None:
            parts.append(f"{ratio(value.value)} {bounds(value)} at batch {size}".replace("  ", " "))
            promised = view.promised(student.variant, size)
            promises += [ratio(promised)] if promised else []
    if not parts:
        return ""
    beside = f", promised {' and '.join(dict.fromkeys(promises))}" if promises else ""
    return f"`{student.name}` {', '.join(parts)}{beside}"


def _faster_attention(view: View, last: Sequence[Student], sizes: Sequence[int]) -> list[str]:
    """One sentence where MACs promise the opposite, one where they promise it too."""
    against: dict[bool, list[str]] = {True: [], False: []}
    for student in last:
        slower: dict[bool, list[str]] = {True: [], False: []}
        for size in sizes:
            value = _speedup(view, student.variant, size)
            if value is not None and value.high is not None and value.high < 1:
                slower[(view.promised(student.variant, size) or 0.0) > 1].append(str(size))
        for opposite, found in slower.items():
            if found:
                against[opposite].append(f"`{student.name}` at batch {' and '.join(found)}")
    return [
        f"Fused attention is faster than {'; '.join(texts)}"
        + (", although the MACs promise the opposite." if opposite else ", as the MACs say.")
        for opposite, texts in against.items()
        if texts
    ]


def _speedup(view: View, variant: Variant, size: int) -> Value | None:
    record = view.first(variant, "latency")
    return record.get("speedup", batch_size=size) if record else None
