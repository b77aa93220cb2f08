"""What is ours, what stands in for what, what went wrong, and how to repeat it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.catalog import DATASETS
from benchmarks.reporting.sections.choices import PAPERS, choices_for
from benchmarks.reporting.text import bullets, counted, listing, sentence

if TYPE_CHECKING:
    from benchmarks.records import Record
    from benchmarks.reporting.view import View

MOST_LISTED = 12


def ours(view: View) -> str:
    """Choices of this suite where the paper is silent."""
    models = {p.point.model for p in view.results.expansion.points}
    papers = [paper for model, paper in PAPERS.items() if model in models]
    lead = (
        f"The method is that of {listing(papers)}, read at second hand: no official code was found, and the "
        "following is not in what could be read. These are our choices, not the paper's."
        if papers
        else "Choices of this suite that change its numbers:"
    )
    lines = [f"**{choice.what}**: {choice.ours}." for choice in choices_for(models)]
    return "\n\n".join(["## What is ours where the paper is silent", lead, bullets(lines)])


def stand_ins(view: View) -> str:
    """What each data set stands for, what is partial of it, and its notes."""
    lines = []
    for name in dict.fromkeys(p.point.dataset for p in view.results.expansion.points):
        card = DATASETS.get(name)
        role = f"**{card.role}**; no number here reproduces one of the paper's" if card.role else ""
        parts = [role, f"partial: {card.partial}" if card.partial else "", *card.notes]
        parts += _data_notes(view, name, (card.partial, card.role))
        told = " ".join(sentence(part) for part in parts if part)
        lines.append(f"`{name}`: {told or 'stands for nothing else.'}")
    return "\n\n".join(["## What is a stand-in, what is partial", bullets(lines)])


def _data_notes(view: View, name: str, told: tuple[str, ...]) -> list[str]:
    """What records say of the rows they used, beyond what the card says."""
    found: dict[str, None] = {}
    for record in view.ok:
        if record.data is not None and record.data.name == name:
            note = record.data.note
            for text in filter(None, told):
                note = note.replace(text, "")
            found |= dict.fromkeys(part.strip() for part in note.split(";") if part.strip())
    return list(found)


def problems(view: View) -> str:
    """Failed points, warnings with their text, and what is missing; short if there is nothing."""
    lines = [_failure(record) for record in view.failures()]
    lines += _warnings(view)
    lines += _missing(view)
    if view.results.stale:
        lines.append(
            f"{counted(view.results.stale, 'stored record')} left out: made with other code, data or "
            "libraries than now."
        )
    body = (
        bullets(lines) if lines else "Nothing failed, no measurement was noisy, nothing is missing."
    )
    return f"## What failed, was noisy or is missing\n\n{body}"


def _failure(record: Record) -> str:
    failure = record.failure
    told = f"{failure.type}: {failure.message}" if failure else "no reason kept"
    return f"**failed**: {record.meter} of {_where(record)}: {told[:300]}"


def _warnings(view: View) -> list[str]:
    """Each text once, with where it was raised."""
    where: dict[str, list[str]] = {}
    for record in view.ok:
        for text in record.warnings:
            where.setdefault(f"{record.meter}: {text}", []).append(_where(record))
    lines = []
    for text, found in where.items():
        places = list(dict.fromkeys(found))
        more = f"; and {len(places) - 3} more" if len(places) > 3 else ""
        lines.append(f"{text} ({'; '.join(places[:3])}{more})")
    return lines


def _where(record: Record) -> str:
    dataset = record.point.get("dataset", "?")
    return f"`{record.label}` on {dataset}, seed {record.seed}"


def _missing(view: View) -> list[str]:
    found = Counter((m.planned.sweep, m.point.dataset, m.meter.name) for m in view.results.missing)
    return [
        f"missing: {meter} of {counted(n, 'point')} of sweep {sweep} on {dataset}"
        for (sweep, dataset, meter), n in found.items()
    ]


def repeat(view: View, *, reference: bool) -> str:
    """The commands that make this report again, and where to read on."""
    suite = view.suite.name
    accepted = (
        "This is the accepted reference: `frugalbench check` compares new results with it. "
        if reference
        else ""
    )
    command = f"```sh\npip install nox\nnox -s bench -- {suite}    # run + report + check\n```"
    text = (
        f"{accepted}`frugalbench run {suite}` measures what is missing, `frugalbench report {suite}` "
        "writes this page from the records alone, `frugalbench show POINT` tells all about one point. "
        "The same seed gives the same weights on one machine. Other processors round differently: "
        "there, learned budgets, and with them MACs and accuracy, differ a little, and times a lot."
    )
    return f"## How to repeat it\n\n{command}\n\n{text}"
