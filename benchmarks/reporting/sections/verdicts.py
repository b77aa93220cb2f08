"""The verdicts of the claims that the suite decides: a table, then what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.reporting.sections.overview import size_text
from benchmarks.reporting.text import (
    MISSING,
    axis_text,
    bullets,
    listing,
    points,
    points_span,
    sentence,
    table,
)

if TYPE_CHECKING:
    from benchmarks.checking.claim_files import Claim
    from benchmarks.checking.verdicts import ClaimResult, Verdict
    from benchmarks.reporting.view import View
    from benchmarks.statistics.intervals import Interval

RULE = (
    "A claim holds if its whole {level} interval lies on the right side of the threshold, is refuted if "
    "it lies on the wrong one, and is undecided otherwise. n counts seeds (accuracy, MACs, parameters) or "
    "processes (speed-up). A refuted claim is a finding, not an error."
)


ROLL_UP = (
    "A claim as a whole is refuted if one row is, holds if all rows do, is unmeasured if none was "
    "measured, and is undecided otherwise."
)


def verdicts(results: Sequence[ClaimResult], view: View) -> str:
    """One row per claim, data set and candidate, the claim named on its first; details below.

    Empty where the suite decides no claim.
    """
    if not results:
        return ""
    rows = [
        [
            _asked(result.claim) if first else "",
            view.name(verdict.dataset),
            f"`{verdict.candidate}`{_setting(verdict)}",
            f"**{verdict.outcome}**{', noisy' if noise(result.claim, verdict) else ''}",
            _estimate(result.claim, verdict),
            str(verdict.n) if verdict.n else MISSING,
        ]
        for result in results
        for first, verdict in zip(_first(result), result.verdicts, strict=True)
    ]
    headers = ["claim", "data set", "candidate", "verdict", "estimate [interval]", "n"]
    level = sorted({f"{result.claim.confidence * 100:g} %" for result in results})
    parts = [
        "## Claims",
        table(headers, rows, align="lllllr"),
        " ".join([RULE.format(level=" or ".join(level)), *_basis(results, view)]),
        " ".join([*_number_of(results, level), ROLL_UP, "So counts `frugalbench check`."]),
        _details(results, view),
    ]
    return "\n\n".join(parts)


def noise(claim: Claim, verdict: Verdict) -> str:
    """What the deciding record says of its own noise, e.g. "IQR/median ... 14 %"; else empty."""
    other = f"noisy at batch {claim.batch_size}:"
    for text in verdict.caveats:
        if text.startswith(("noisy:", other)):
            return text.partition(":")[2].strip().replace("%", " %")
    return ""


def _asked(claim: Claim) -> str:
    size = f" at batch {claim.batch_size}" if claim.batch_size is not None else ""
    return f"{claim.title}: {threshold_text(claim)}{size}, against `{claim.baseline}`"


def _measured(results: Sequence[ClaimResult]) -> int:
    return sum(v.outcome != "unmeasured" for result in results for v in result.verdicts)


def _basis(results: Sequence[ClaimResult], view: View) -> list[str]:
    """On which data and on models of what size the verdicts rest."""
    if not _measured(results):
        return []
    sets = dict.fromkeys(name for result in results for name in result.claim.datasets)
    told = []
    for name in sets:
        role = view.card(name).role
        told.append(f"{view.name(name)}{f' ({role})' if role else ''}")
    sweeps = {(result.claim.sweep, name) for result in results for name in result.claim.datasets}
    members = [v for v in view.variants if (v.sweep, v.dataset) in sweeps and v.is_baseline]
    sizes = dict.fromkeys(size_text(view.config(v), list(v.axes), v) for v in members)
    counts = [
        value.value
        for variant in members
        for record in view.records(variant, "memory")
        if (value := record.get("parameters"))
    ]
    if counts:
        ends = dict.fromkeys(f"{count / 1e6:.2f}" for count in (min(counts), max(counts)))
        sizes = dict.fromkeys([*sizes, f"{' to '.join(ends)} million parameters"])
    text = (
        f"All rest on {listing(told, by=' and ')}, with models of {listing([*sizes])}, and say nothing "
        "of other data or sizes."
    )
    return [text]


def _number_of(results: Sequence[ClaimResult], level: Sequence[str]) -> list[str]:
    n = _measured(results)
    if n < 2:
        return []
    text = (
        f"These are {n} verdicts, each at {' or '.join(level)} by itself; nothing is corrected for their "
        "number."
    )
    return [text]


def _first(result: ClaimResult) -> list[bool]:
    return [i == 0 for i in range(len(result.verdicts))]


def _details(results: Sequence[ClaimResult], view: View) -> str:
    parts = ["<details><summary>Sources, thresholds and evidence</summary>"]
    for result in results:
        claim = result.claim
        source = f"Source: {claim.source.paper}, {claim.source.section}; {claim.source.certainty}"
        threshold = f"Threshold {threshold_text(claim)}: {claim.threshold.why}"
        told = [sentence(" ".join(text.split())) for text in (claim.statement, source, threshold)]
        parts.append(f"**{claim.title}** (`{claim.id}`): {' '.join(told)}")
        parts.append(bullets([_evidence(claim, verdict, view) for verdict in result.verdicts]))
    return "\n\n".join([*parts, "</details>"])


def _evidence(claim: Claim, verdict: Verdict, view: View) -> str:
    # the reason states the threshold as the claim file has it; here it stands as in the table
    reason = verdict.reason.replace(claim.threshold.text, threshold_text(claim))
    told = [reason, *verdict.caveats]
    told += [f"{name}: {_bounds(claim, i)}" for name, i in verdict.evidence.items()]
    where = f"{view.name(verdict.dataset)}, `{verdict.candidate}`"
    return f"{where}: {sentence('; '.join(text.rstrip('.') for text in told))}"


def _setting(verdict: Verdict) -> str:
    told = [axis_text(name, value) for name, value in verdict.setting.items()]
    return f" ({', '.join(told)})" if told else ""


def _estimate(claim: Claim, verdict: Verdict) -> str:
    if verdict.interval is not None:
        return _bounds(claim, verdict.interval)
    if verdict.estimate is not None:
        return f"{_number(claim, verdict.estimate)} single"
    return MISSING


def _bounds(claim: Claim, interval: Interval) -> str:
    if claim.quantity == "accuracy_difference":
        return f"{points(interval.estimate)} points {points_span(interval.low, interval.high)}"
    low, high = (_number(claim, value, unit=False) for value in (interval.low, interval.high))
    return f"{_number(claim, interval.estimate)} [{low}, {high}]"


def threshold_text(claim: Claim) -> str:
    """E.g. "at least -1.0 points"."""
    return f"{claim.threshold.direction} {_number(claim, claim.threshold.value)}"


def _number(claim: Claim, value: float, *, unit: bool = True) -> str:
    if claim.quantity == "accuracy_difference":
        return f"{points(value)}{' points' if unit else ''}"
    digits = 3 if claim.quantity in {"macs_ratio", "parameters_ratio"} else 2
    return f"{value:.{digits}f}{'x' if unit else ''}"
