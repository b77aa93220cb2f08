"""The verdicts of the claims that the suite decides: a table, then what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.reporting.text import MISSING, bullets, points, sentence, table

if TYPE_CHECKING:
    from benchmarks.checking.claim_files import Claim
    from benchmarks.checking.verdicts import ClaimResult, Verdict
    from benchmarks.statistics.intervals import Interval


RULE = (
    "A claim holds if its whole {level} interval lies on the right side of the threshold, is refuted if "
    "it lies on the wrong one, and is undecided otherwise. n counts seeds (accuracy, MACs) or processes "
    "(speed-up). A refuted claim is a finding, not an error."
)


def verdicts(results: Sequence[ClaimResult]) -> str:
    """One row per claim, data set and candidate; sources, thresholds and caveats below."""
    if not results:
        return "## Claims\n\nNo claim is decided by this suite."
    rows = [
        [
            f"{result.claim.title}",
            verdict.dataset,
            f"`{verdict.candidate}`{_setting(verdict)}",
            f"**{verdict.outcome}**",
            _estimate(result.claim, verdict),
            _threshold(result.claim),
            str(verdict.n) if verdict.n else MISSING,
        ]
        for result in results
        for verdict in result.verdicts
    ]
    headers = ["claim", "data set", "candidate", "verdict", "estimate [interval]", "threshold", "n"]
    level = sorted({f"{result.claim.confidence * 100:g} %" for result in results})
    parts = [
        "## Claims",
        table(headers, rows, align="lllllrr"),
        RULE.format(level=" or ".join(level)),
        _details(results),
    ]
    return "\n\n".join(parts)


def _details(results: Sequence[ClaimResult]) -> str:
    lines = []
    for result in results:
        claim = result.claim
        source = f"Source: {claim.source.paper}, {claim.source.section}; {claim.source.certainty}"
        threshold = f"Threshold {_threshold(claim)}: {claim.threshold.why}"
        told = [sentence(text) for text in (claim.statement, source, threshold)]
        lines.append(f"**{claim.title}** (`{claim.id}`): {' '.join(told)}")
        for verdict in result.verdicts:
            told = [verdict.reason, *verdict.caveats]
            told += [f"{name}: {_bounds(claim, i)}" for name, i in verdict.evidence.items()]
            where = f"{verdict.dataset}, `{verdict.candidate}`"
            lines.append(f"{where}: {sentence('; '.join(text.rstrip('.') for text in told))}")
    return (
        "<details><summary>Sources, thresholds and evidence</summary>\n\n"
        f"{bullets(lines)}\n\n</details>"
    )


def _setting(verdict: Verdict) -> str:
    return (
        f" ({', '.join(f'{k} {v}' for k, v in verdict.setting.items())})" if verdict.setting else ""
    )


def _estimate(claim: Claim, verdict: Verdict) -> str:
    if verdict.interval is not None:
        return _bounds(claim, verdict.interval)
    if verdict.estimate is not None:
        return f"{_number(claim, verdict.estimate)} single"
    return MISSING


def _bounds(claim: Claim, interval: Interval) -> str:
    low, high = (_number(claim, value, unit=False) for value in (interval.low, interval.high))
    return f"{_number(claim, interval.estimate)} [{low}, {high}]"


def _threshold(claim: Claim) -> str:
    return f"{claim.threshold.direction} {_number(claim, claim.threshold.value)}"


def _number(claim: Claim, value: float, *, unit: bool = True) -> str:
    if claim.quantity == "accuracy_difference":
        return f"{points(value)}{' points' if unit else ''}"
    digits = 3 if claim.quantity == "macs_ratio" else 2
    return f"{value:.{digits}f}{'x' if unit else ''}"
