"""Evaluates a suite's claims and compares it with the reference; measures nothing itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.checking.claims import evaluate
from benchmarks.checking.regressions import Change, compare, failures
from benchmarks.results import collect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.checking.verdicts import ClaimResult, Outcome, Verdict
    from benchmarks.planning.suite import Suite

OK, REGRESSION, UNDECIDED, UNMEASURED = 0, 1, 3, 4


@dataclass(frozen=True)
class CheckResult:
    """What `frugalbench check` found.

    Attributes:
        suite: its name.
        claims: one result for each claim that the suite decides.
        changes: differences from the reference, regressions first; without a reference only
            failed points.
        has_reference: whether anything was accepted before.
        n_records: successful current records.
        n_missing: planned records that are not there.
        n_stale: records of these points under a key that no longer fits.
        n_damaged: records of these points that cannot be used; a warning named each.
    """

    suite: str
    claims: Sequence[ClaimResult]
    changes: Sequence[Change] = field(default_factory=list)
    has_reference: bool = False
    n_records: int = 0
    n_missing: int = 0
    n_stale: int = 0
    n_damaged: int = 0

    @property
    def regressions(self) -> list[Change]:
        """The changes that make the gate red."""
        return [change for change in self.changes if change.red]

    def exit_code(self, *, strict: bool = False) -> int:
        """0 nothing is worse; 1 a regression or failed point; 3 an open claim (strict); 4 unmeasured.

        A claim is open where any of its cells is undecided or unmeasured (a refuted cell beside it
        or not): with `strict`, nothing measured is never a pass.

        A suite that no claim names is judged by its comparison with the reference, if it has one;
        without any record nothing was checked, which is never a pass (4).
        """
        if self.regressions:
            return REGRESSION
        outcomes = [claim.outcome for claim in self.claims]
        if not self.n_records or (outcomes and set(outcomes) == {"unmeasured"}):
            return UNMEASURED
        if strict and any(_open(claim) for claim in self.claims):
            return UNDECIDED
        return OK


def check_suite(suite: str | Suite, *, runs: Path | None = None) -> CheckResult:
    """Claims and regressions of a suite's current records.

    Args:
        suite: name, path or a loaded suite.
        runs: working state; None means `paths.runs_dir()`.

    Raises:
        InvalidFileError: an invalid suite or claim file.
    """
    current = collect(suite, runs=runs)
    reference = collect(current.suite, reference=True)
    claims = evaluate(current)
    if reference.found:
        accepted = evaluate(reference, evidence=False)
        changes = [*compare(reference, current), *_verdict_changes(accepted, claims)]
    else:
        changes = list(failures(current))
    return CheckResult(
        suite=current.suite.name,
        claims=claims,
        changes=changes,
        has_reference=bool(reference.found),
        n_records=len(current.records) - len(current.failed),
        n_missing=len(current.missing),
        n_stale=current.stale,
        n_damaged=current.damaged,
    )


def _open(result: ClaimResult) -> bool:
    outcomes = {result.outcome, *(verdict.outcome for verdict in result.verdicts)}
    return not outcomes.isdisjoint({"undecided", "unmeasured"})


def _verdict_changes(
    before: Iterable[ClaimResult], after: Iterable[ClaimResult]
) -> Iterable[Change]:
    """Verdicts that changed where both sides measured; printed, never red."""
    old = {key: outcome for result in before for key, outcome in _outcomes(result)}
    for result in after:
        for key, outcome in _outcomes(result):
            was = old.get(key, "unmeasured")
            if "unmeasured" not in {was, outcome} and was != outcome:
                yield Change("verdict", key, was, outcome, red=False)


def _outcomes(result: ClaimResult) -> Iterable[tuple[str, Outcome]]:
    for verdict in result.verdicts:
        yield f"{result.claim.id}, {cell_text(verdict)}", verdict.outcome


def cell_text(verdict: Verdict) -> str:
    """E.g. "budget-low on r8, depth = 4"."""
    axes = "".join(f", {name} = {value}" for name, value in verdict.setting.items())
    return f"{verdict.candidate} on {verdict.dataset}{axes}"


def as_document(result: CheckResult, *, strict: bool) -> dict[str, Any]:
    """The JSON that `check --json` prints."""
    return {
        "suite": result.suite,
        "exit_code": result.exit_code(strict=strict),
        "has_reference": result.has_reference,
        "records": result.n_records,
        "missing": result.n_missing,
        "stale": result.n_stale,
        "damaged": result.n_damaged,
        "claims": [
            {
                "id": claim.claim.id,
                "title": claim.claim.title,
                "outcome": claim.outcome,
                "threshold": claim.claim.threshold.text,
                "verdicts": [asdict(verdict) for verdict in claim.verdicts],
            }
            for claim in result.claims
        ],
        "regressions": [asdict(change) for change in result.regressions],
        "changes": [asdict(change) for change in result.changes if not change.red],
    }
