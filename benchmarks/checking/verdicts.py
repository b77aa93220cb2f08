"""What a claim evaluates to: holds, refuted, undecided or unmeasured, from the interval alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.checking.claim_files import Claim, Threshold
    from benchmarks.statistics.intervals import Interval

Outcome = Literal["holds", "refuted", "undecided", "unmeasured"]


@dataclass(frozen=True)
class Verdict:
    """One claim on one data set for one candidate.

    Attributes:
        dataset, candidate: what was compared; `setting` holds the sweep's axis values, if any.
        outcome: what the interval says.
        estimate: the point estimate, None where nothing was measured.
        interval: what decided, None where there were too few units for one.
        n: units that the estimate rests on (seeds or processes).
        evidence: further intervals that do not decide, by name.
        caveats: what a reader must know beside the outcome.
        records: names of the record files used.
        reason: one sentence.
    """

    dataset: str
    candidate: str
    setting: Mapping[str, Any]
    outcome: Outcome
    reason: str
    estimate: float | None = None
    interval: Interval | None = None
    n: int = 0
    evidence: Mapping[str, Interval] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimResult:
    """A claim, and its verdict on each data set and candidate."""

    claim: Claim
    verdicts: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        """The claim as a whole."""
        return overall(verdict.outcome for verdict in self.verdicts)


def judge(interval: Interval, threshold: Threshold) -> Outcome:
    """Holds if the whole interval lies on the right side, refuted if on the wrong one."""
    low, high, value = interval.low, interval.high, threshold.value
    right, wrong = {
        "at least": (low >= value, high < value),
        "above": (low > value, high <= value),
        "at most": (high <= value, low > value),
        "below": (high < value, low >= value),
    }[threshold.direction]
    if right:
        return "holds"
    return "refuted" if wrong else "undecided"


def overall(outcomes: Iterable[Outcome]) -> Outcome:
    """One refuted cell refutes; all must hold to hold; nothing measured is unmeasured."""
    found = set(outcomes)
    if not found - {"unmeasured"}:
        return "unmeasured"
    if "refuted" in found:
        return "refuted"
    return "holds" if found == {"holds"} else "undecided"
