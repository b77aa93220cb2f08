"""What is ours, what stands in for what, what went wrong, and how to repeat it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.data.weights import find_weights
from benchmarks.reporting.sections.choices import PAPERS, choices_for
from benchmarks.reporting.text import bullets, counted, listing, sentence

if TYPE_CHECKING:
    from benchmarks.records import Record
    from benchmarks.reporting.view import View

MOST_PLACES = 4
PERCENTAGE = re.compile(r"(\d+(?:\.\d+)?) ?%")


def ours(view: View) -> str:
    """Choices of this suite where the paper is silent."""
    models = {p.point.model for p in view.results.expansion.points}
    papers = list(dict.fromkeys(paper for model, paper in PAPERS.items() if model in models))
    lead = (
        f"The method is that of {listing(papers, by='; and of ')}. The following is not in what could be "
        "read. "
        "These are our choices, not the paper's."
        if papers
        else "Choices of this suite that change its numbers:"
    )
    lines = [f"**{choice.what}**: {choice.ours}." for choice in choices_for(view)]
    return "\n\n".join(["## What is ours where the paper is silent", lead, bullets(lines)])


def stand_ins(view: View) -> str:
    """What each data set stands for, what is partial of it, its notes; where weights come from."""
    lines = []
    for name in dict.fromkeys(p.point.dataset for p in view.results.expansion.points):
        card = view.card(name)
        role = f"**{card.role}**; no number here reproduces one of the paper's" if card.role else ""
        parts = [role, f"partial: {card.partial}" if card.partial else "", *card.notes]
        parts += _data_notes(view, name, (card.partial, card.role))
        told = " ".join(sentence(part) for part in parts if part)
        lines.append(f"`{view.name(name)}`: {told or 'stands for nothing else.'}")
    weights = {p.point.pretrained for p in view.results.expansion.points} - {None}
    for pretrained in sorted(map(str, weights)):
        told = " ".join(sentence(part) for part in find_weights(pretrained).provenance)
        lines.append(f"Pretrained weights `{pretrained}`: {told}")
    return "\n\n".join(["## What is a stand-in, what is partial", bullets(lines)])


def _data_notes(view: View, name: str, told: tuple[str, ...]) -> list[str]:
    """What records say of the rows they used, beyond what the card says, and in which sweeps."""
    noted: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    for record in view.ok:
        if record.data is None or record.point["dataset"] != name:
            continue
        note = record.data.note
        for text in filter(None, told):
            note = note.replace(text, "")
        parts = [part.strip() for part in note.split(";") if part.strip()]
        for part in parts:
            noted.setdefault(part, set()).add(record.point_id)
        seen.setdefault(record.data.split, set()).add(record.point_id)
    everywhere = set().union(*seen.values()) if seen else set()
    return [_placed(view, part, points, everywhere) for part, points in noted.items()]


def _placed(view: View, note: str, points: set[str], everywhere: set[str]) -> str:
    """A note that holds for some sweeps only, or for some of their points, says so."""
    sweeps = {point: view.sweeps_of(point) for point in everywhere}
    if points == everywhere:
        return note
    told = []
    for sweep in (s.name for s in view.suite.sweeps):
        there = {point for point, names in sweeps.items() if sweep in names}
        if there & points:
            told.append(f"{'sweep' if there <= points else 'part of sweep'} `{sweep}`")
    return f"{note} ({listing(told)})"


def problems(view: View) -> str:
    """Failed points, warnings with their text, and what is missing; short if there is nothing."""
    lines = [_failure(view, record) for record in view.failures()]
    lines += _warnings(view)
    lines += _missing(view)
    if view.results.stale:
        lines.append(
            f"{counted(view.results.stale, 'stored record')} left out: made with other code, data or "
            "libraries than now."
        )
    if view.results.damaged:
        lines.append(
            f"{counted(view.results.damaged, 'stored record')} left out: damaged or edited; the command "
            "that wrote this page named each."
        )
    body = (
        bullets(lines) if lines else "Nothing failed, no measurement was noisy, nothing is missing."
    )
    return f"## What failed, was noisy or is missing\n\n{body}"


def _failure(view: View, record: Record) -> str:
    failure = record.failure
    told = f"{failure.type}: {failure.message}" if failure else "no reason kept"
    return f"**failed**: {record.meter} of {view.place(record)}: {told[:300]}"


def _warnings(view: View) -> list[str]:
    """Texts that differ in a percentage alone share a line: its range, and the places, worst first."""
    groups: dict[tuple[str, str], list[tuple[float | None, Record]]] = {}
    for record in view.ok:
        for text in record.warnings:
            found = PERCENTAGE.search(text)
            share = float(found[1]) if found else None
            alike = PERCENTAGE.sub("{}", text, count=1)
            groups.setdefault((record.meter, alike), []).append((share, record))
    return [_grouped(view, meter, text, found) for (meter, text), found in groups.items()]


def _grouped(view: View, meter: str, text: str, found: list[tuple[float | None, Record]]) -> str:
    shares = sorted({share for share, _ in found if share is not None})
    if shares:
        ends = dict.fromkeys(f"{end:g}" for end in (shares[0], shares[-1]))
        text = text.replace("{}", f"{' to '.join(ends)} %", 1)
    worst = sorted(found, key=lambda pair: -(pair[0] or 0.0))
    places = list(dict.fromkeys(view.place(record) for _, record in worst))
    what = counted(len(places), found[0][1].kind)
    if len(places) == len([r for r in view.ok if r.meter == meter]) and len(places) > 1:
        return f"{meter}: {text} (all {what})"
    order = ", worst first" if len(shares) > 1 else ""
    return f"{meter}: {text} ({what}{order}: {listing(places, most=MOST_PLACES, by='; ')})"


def _missing(view: View) -> list[str]:
    found = Counter((m.planned.sweep, m.point.dataset, m.meter.name) for m in view.results.missing)
    alike: dict[tuple[str, str, int], list[str]] = {}
    for (sweep, dataset, meter), n in found.items():
        alike.setdefault((sweep, dataset, n), []).append(meter)
    return [
        f"missing: {listing(meters)} of {counted(n, 'point')} of sweep `{sweep}` on {view.name(dataset)}"
        for (sweep, dataset, n), meters in alike.items()
    ]


def repeat(view: View) -> str:
    """The commands that make this report again, and where to read on."""
    suite = view.suite_argument
    accepted = (
        "This is the accepted reference: `frugalbench check` compares new results with it. "
        if view.reference
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
