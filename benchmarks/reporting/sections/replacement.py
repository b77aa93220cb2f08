"""Attention replaced in trained models: what the students lost, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.sections.sparse_teachers import sparse_teacher_section
from benchmarks.reporting.sparse_layers import MEASURES, QUERIES, correlations, reading
from benchmarks.reporting.students import (
    continued,
    deletions,
    drop,
    emptied,
    students,
    usual_samples,
)
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    bounds,
    counted,
    gap_cell,
    gap_text,
    layers_text,
    percent,
    ratio,
    significant,
    span,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.reporting.sparse_layers import LayerCorrelation
    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View
    from benchmarks.statistics.intervals import Interval

HELD = {
    "nothing": "nothing",
    "depth": "depth",
    "deletion": "loss by `identity`",
    "both": "both",
}
"""Things held fixed in a correlation, as the table's columns call them."""
CORRELATION_NOTE = (
    "Spearman's rho between a layer's sparsity and the test accuracy lost by replacing that layer alone, "
    "over {n_layers} layers; mean over seeds of Fisher's z, with its 95 % t interval over seeds, which says "
    "nothing of other layers or models. The paper reads it as below 0: the sparser, the less is lost. But "
    "late layers are both sparse and harmless, so it has to survive holding fixed the layer's depth, and "
    "what the student loses in which that layer has no attention and nothing in its place (`identity`). The "
    "first measure decides, which is our choice; the others stand beside it."
)


def replacement(view: View) -> str:
    """Everything on students; empty where the suite has none."""
    found = students(view)
    if not found:
        return ""
    parts = ["## Replaced layers"]
    for group in dict.fromkeys(s.teacher.group_id for s in found):
        own = [s for s in found if s.teacher.group_id == group]
        own.sort(key=lambda s: (len(s.replaced), s.replaced))
        teacher = own[0].teacher
        heading = f"### Students of `{view.called(teacher)}` on {view.inputs_of(teacher)}"
        parts += [heading, _accuracies(view, own), *_costs(view, own)]
    parts += [_correlations(view), sparse_teacher_section(view)]
    return "\n\n".join(part for part in parts if part)


def _accuracies(view: View, own: Sequence[Student]) -> str:
    teacher = own[0].teacher
    before = view.mean(teacher, "accuracy", "accuracy")
    deleted = deletions(view, teacher)
    first = ["none", "the teacher", percent(before) if before is not None else MISSING]
    rows = [[*first, *[NOT_APPLICABLE] * 4]]
    for student in own:
        accuracy = view.mean(student.variant, "accuracy", "accuracy")
        on, empty = continued(own, student), emptied(own, student)
        alone = deleted.get(student.replaced)
        mark = "" if alone is None or alone.informative else ", **uninformative**"
        rows.append(
            [
                layers_text(student.replaced),
                f"`{student.name}`" if student.replaced else _trained_on(student, own),
                percent(accuracy) if accuracy is not None else MISSING,
                gap_cell(drop(view, student)),
                gap_cell(view.difference(on.variant, student.variant, "accuracy"))
                if on is not None and on is not student
                else NOT_APPLICABLE,
                gap_cell(view.difference(student.variant, empty.variant, "accuracy"))
                if empty is not None
                else NOT_APPLICABLE,
                f"{gap_text(alone.drop, bare=True)}{mark}" if alone else NOT_APPLICABLE,
            ]
        )
    headers = [
        "replaced layers", "by", "accuracy (%)", "lost against the teacher (points)",
        "lost against the teacher trained on (points)", "gained over `identity` (points)",
        "lost if deleted, untrained (points)",
    ]  # fmt: skip
    told = [
        column
        for column in range(len(headers))
        if column < 4 or any(row[column] != NOT_APPLICABLE for row in rows)
    ]
    rows = [[row[column] for column in told] for row in rows]
    headers = [headers[column] for column in told]
    return (
        table(headers, rows, align="ll" + "r" * (len(headers) - 2))
        + f"\n\n{_accuracy_note(view, own)}"
    )


def _trained_on(student: Student, own: Sequence[Student]) -> str:
    more = "" if student.samples == usual_samples(own) else f", {student.samples:,} samples"
    return f"the teacher, trained on{more}"


def _accuracy_note(view: View, own: Sequence[Student]) -> str:
    seeds = max(len(view.values(s.variant, "accuracy", "accuracy")) for s in own)
    usual = usual_samples(own)
    note = (
        f"Test accuracy, mean over {counted(seeds, 'seed')}; every student was trained on {usual:,} samples "
        "after its teacher was done"
    )
    if any(s.samples != usual for s in own):
        note += ", or on as many as it says, and is compared with those that had as many"
    note += ". "
    if seeds > 1:
        note += "Differences are paired over seeds, with their 95 % t interval. "
    if any(not s.replaced for s in own):
        note += (
            "The teacher trained on replaces nothing and says what these samples alone are worth. "
        )
    else:
        note += "The suite has no teacher trained on, so what the samples alone are worth is not known. "
    if any(s.mixer == "identity" for s in own):
        note += (
            "`identity` puts nothing in attention's place and is trained as long: what a module gains over "
            "it is what the module itself is good for."
        )
    return note.strip()


def _costs(view: View, own: Sequence[Student]) -> list[str]:
    """The table of what students save, and its note; none where the suite measures no cost."""
    variants = [s.variant for s in own]
    if not view.plans(variants, "flops", "memory", "latency"):
        return []
    teacher = own[0].teacher
    sizes = view.timed_at(variants)
    peaks = view.batch_sizes_of(variants, "memory", "peak_memory")[-1:]
    columns = {
        "parameters (cut)": view.plans(variants, "memory"),
        "MACs per input (cut)": view.plans(variants, "flops"),
        **{f"peak memory, batch {n}, MiB (cut)": view.plans(variants, "memory") for n in peaks},
        **{f"speed, batch {n} (promised)": True for n in sizes},
    }
    kept_columns = [0, 1, *(i for i, keep in enumerate(columns.values(), start=2) if keep)]
    own_costs = _cut(view, teacher, None, peaks)
    base = view.baseline(variants[0])
    own_speeds = [
        ratio(1.0) if teacher.is_baseline else _speed(view, teacher, size) for size in sizes
    ]
    rows = [["0", "the teacher", *own_costs, *own_speeds]]
    alike: dict[tuple[int, str, tuple[str, ...]], list[Student]] = {}
    for student in own:
        speeds = [_speed(view, student.variant, size) for size in sizes]
        cells = (*_cut(view, student.variant, teacher, peaks), *speeds)
        if student.replaced and set(cells) != {NOT_APPLICABLE}:
            key = (len(student.replaced), f"`{student.name}`", cells)
            alike.setdefault(key, []).append(student)
    for (n, name, cells), members in alike.items():
        rows.append([f"{n}: {' or '.join(_ranges(members))}", name, *cells])
    headers = ["layers replaced", "by", *columns]
    shown = [[row[i] for i in kept_columns] for row in rows]
    headers = [headers[i] for i in kept_columns]
    note = (
        "How many layers are replaced, and which: those that cost the same share a line. Parameters, MACs "
        "and peak memory are of the whole model; a cut below 0 is an addition."
    )
    if sizes and base is not None:
        note += (
            f" Speed: the time of `{base.label}`, whose attention is fused, over the student's, on one "
            "thread of the CPU, first seed, with its 95 % interval over processes, beside what the MACs "
            "promise; above 1x is faster."
        )
    return [table(headers, shown, align="ll" + "r" * (len(headers) - 2)), note]


def _ranges(members: Sequence[Student]) -> list[str]:
    """Layers of students that cost the same; single layers are put together."""
    if all(len(s.replaced) == 1 for s in members):
        return [layers_text(sorted({s.replaced[0] for s in members}))]
    return [layers_text(s.replaced) for s in members]


def _cut(view: View, variant: Variant, base: Variant | None, peaks: Sequence[int]) -> list[str]:
    """Parameters, MACs and peak memory, each with the share that is cut of the base's."""
    kinds: list[tuple[str, str, dict[str, float | str]]] = [
        ("memory", "parameters", {}),
        ("flops", "macs", {"stat": "mean"}),
    ]
    kinds += [("memory", "peak_memory", {"batch_size": n}) for n in peaks]
    cells = []
    for meter, name, context in kinds:
        ours = view.mean(variant, meter, name, **context)
        theirs = view.mean(base, meter, name, **context) if base else None
        if ours is None:
            cells.append(NOT_APPLICABLE)
            continue
        shown = {
            "parameters": f"{ours:,.0f}",
            "macs": f"{significant(ours / 1e6)} M",
            "peak_memory": significant(ours / 2**20),
        }[name]
        cells.append(f"{shown} ({(1 - ours / theirs) * 100:+.1f} %)" if theirs else shown)
    return cells


def _speed(view: View, variant: Variant, size: int) -> str:
    record = view.first(variant, "latency")
    value = record.get("speedup", batch_size=size) if record else None
    if value is None:
        return NOT_APPLICABLE
    promised = view.promised(variant, size)
    beside = f"({ratio(promised)})" if promised else ""
    return " ".join(filter(None, [ratio(value.value), bounds(value), beside]))


def _correlations(view: View) -> str:
    found = [c for c in correlations(view) if c.queries == "all" or c.measure == "concentration"]
    if not found:
        return ""
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for c in found:
        measure = MEASURES[c.measure] + (f", {QUERIES[c.queries]}" if c.queries != "all" else "")
        of = f"`{c.name}`" + (f" in `{view.called(c.teacher)}`" if _many(found) else "")
        interval = "" if c.rho.method == "single" else f" {span(c.rho.low, c.rho.high, 2)}"
        rows.setdefault((c.teacher.group_id, of, measure), {})[c.held] = (
            f"{c.rho.estimate:+.2f}{interval}"
        )
    headers = ["replaced by", "sparsity", *[f"rho, {name} held fixed" for name in HELD.values()]]
    body = [
        [*key[1:], *[cells.get(held, NOT_APPLICABLE) for held in HELD]]
        for key, cells in rows.items()
    ]
    return "\n\n".join(
        [
            "### Are sparser layers cheaper to replace?",
            sparser_cost_less(view),
            table(headers, body, align="ll" + "r" * len(HELD)),
            CORRELATION_NOTE.format(n_layers=max(c.n_layers for c in found)),
        ]
    )


def sparser_cost_less(view: View) -> str:
    """The paper's first reading, judged by our first measure; empty where nothing was correlated."""
    found = [c for c in correlations(view) if c.measure == "concentration" and c.queries == "all"]
    told = []
    for key in dict.fromkeys((c.teacher.group_id, c.name) for c in found):
        own = [c for c in found if (c.teacher.group_id, c.name) == key]
        of = f"`{own[0].name}`" + (f" in `{view.called(own[0].teacher)}`" if _many(found) else "")
        rhos = [f"{_rho(c.rho)} with {HELD[c.held]} held fixed" for c in own]
        told.append(f"for {of} {reading(own)} ({', '.join(rhos)})")
    return f'"Sparser layers cost less to replace": {"; ".join(told)}.' if told else ""


def _many(found: Sequence[LayerCorrelation]) -> bool:
    return len({c.teacher.group_id for c in found}) > 1


def _rho(rho: Interval) -> str:
    interval = "" if rho.method == "single" else f" {span(rho.low, rho.high, 2)}"
    return f"rho {rho.estimate:+.2f}{interval}"
