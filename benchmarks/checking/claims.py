"""Evaluates claims on a suite's records; measures nothing itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.checking.attention import attention_need
from benchmarks.checking.claim_files import load_claims
from benchmarks.checking.places import Cell, baseline_of, cells
from benchmarks.checking.verdicts import ClaimResult, Verdict, judge
from benchmarks.errors import StorageError
from benchmarks.statistics.intervals import (
    Interval,
    paired_bootstrap,
    paired_log_ratio_t,
    paired_t,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.checking.claim_files import Claim
    from benchmarks.records import Record, Value
    from benchmarks.results import ResultSet

RESAMPLES = 10_000


def evaluate(results: ResultSet, *, evidence: bool = True) -> list[ClaimResult]:
    """Every claim that `results.suite` decides; see `evaluate_claim`.

    Raises:
        InvalidFileError: a claim file is wrong.
    """
    claims = load_claims(results.suite.name)
    return [evaluate_claim(claim, results, evidence=evidence) for claim in claims]


def evaluate_claim(claim: Claim, results: ResultSet, *, evidence: bool = True) -> ClaimResult:
    """A verdict for each data set and candidate of a claim.

    Args:
        claim: a claim that `results.suite` decides.
        results: current or accepted results.
        evidence: also make the intervals that do not decide (they read per-example arrays).

    Raises:
        InvalidFileError: as `Claim.check_names`.
    """
    claim.check_names(results.expansion)
    judges = {
        "accuracy_difference": _accuracy,
        "macs_ratio": _macs,
        "parameters_ratio": _parameters,
        "speedup": _speedup,
    }
    judged = judges[claim.quantity]
    verdicts = [judged(claim, results, c, evidence) for c in cells(claim, results.expansion)]
    return ClaimResult(claim, tuple(verdicts))


@dataclass(frozen=True)
class _Pair:
    """The values of one seed, and the records that they come from."""

    seed: int
    ours: float
    theirs: float
    records: tuple[Record, Record]


def _pairs(
    claim: Claim, results: ResultSet, cell: Cell, meter: str, name: str, **context: str
) -> list[_Pair]:
    pairs = []
    for planned in cell.points:
        baseline = baseline_of(claim, results.expansion, cell, planned)
        ours = results.record(planned.point.point_id, meter)
        theirs = results.record(baseline.point_id, meter) if baseline else None
        if ours is None or theirs is None:
            continue
        left, right = ours.get(name, **context), theirs.get(name, **context)
        if left is not None and right is not None:
            pairs.append(_Pair(planned.point.seed, left.value, right.value, (ours, theirs)))
    return pairs


def _accuracy(claim: Claim, results: ResultSet, cell: Cell, evidence: bool) -> Verdict:
    pairs = _pairs(claim, results, cell, "accuracy", "accuracy")
    if not pairs:
        return _unmeasured(results, cell, f"accuracy of {cell.candidate} and {claim.baseline}")
    differences = [pair.ours - pair.theirs for pair in pairs]
    interval = paired_t(differences, claim.confidence) if len(pairs) > 1 else None
    estimate = interval.estimate if interval else differences[0]
    return _decided(
        claim,
        results,
        cell,
        estimate,
        interval,
        records=[record for pair in pairs for record in pair.records],
        evidence=_over_examples(claim, results, pairs) if evidence else {},
        caveats=_need_of_attention(claim, results, cell),
    )


def _need_of_attention(claim: Claim, results: ResultSet, cell: Cell) -> list[str]:
    """What is known of it; of students the report says which layers' attention is needed."""
    if MODELS.get(cell.points[0].point.model).source == "teacher":
        return []
    need = attention_need(
        results,
        claim.sweep,
        cell.dataset,
        claim.baseline,
        margin=abs(claim.threshold.value),
        confidence=claim.confidence,
    )
    return [need.text] if need.text else []


def _over_examples(claim: Claim, results: ResultSet, pairs: Sequence[_Pair]) -> dict[str, Interval]:
    """For each seed, the difference's interval over test examples; left out without arrays."""
    found = {}
    for pair in pairs:
        try:
            ours, theirs = (results.arrays(record) for record in pair.records)
        except StorageError:
            continue
        if ours is None or theirs is None:
            continue
        both = ours.merge(theirs, on="row_id", suffixes=("", "_base"), validate="one_to_one")
        if len(both) == 0:
            continue
        found[f"seed {pair.seed}, over examples"] = paired_bootstrap(
            (both["prediction"] == both["label"]).to_numpy(),
            (both["prediction_base"] == both["label_base"]).to_numpy(),
            claim.confidence,
            RESAMPLES,
            pair.seed,
        )
    return found


def _macs(claim: Claim, results: ResultSet, cell: Cell, evidence: bool) -> Verdict:
    pairs = _pairs(claim, results, cell, "flops", "macs", stat="mean")
    if not pairs:
        return _unmeasured(results, cell, f"MACs of {cell.candidate} and {claim.baseline}")
    logs = [math.log(pair.ours / pair.theirs) for pair in pairs]
    interval = paired_log_ratio_t(logs, claim.confidence) if len(pairs) > 1 else None
    core = _pairs(claim, results, cell, "flops", "macs_attention_core", stat="mean")
    ratios = [math.log(p.ours / p.theirs) for p in core if p.ours > 0 and p.theirs > 0]
    beside = {}
    if evidence and len(ratios) > 1:
        beside["attention core only"] = paired_log_ratio_t(ratios, claim.confidence)
    identical = interval is not None and interval.low == interval.high
    return _decided(
        claim,
        results,
        cell,
        interval.estimate if interval else math.exp(logs[0]),
        interval,
        records=[record for pair in pairs for record in pair.records],
        evidence=beside,
        caveats=["the same on every seed, so the interval has no width"] if identical else [],
    )


def _parameters(claim: Claim, results: ResultSet, cell: Cell, evidence: bool) -> Verdict:
    """Counted, the same for every seed: an interval of no width decides."""
    del evidence
    pairs = _pairs(claim, results, cell, "memory", "parameters")
    if not pairs:
        return _unmeasured(results, cell, f"parameters of {cell.candidate} and {claim.baseline}")
    ratio = pairs[0].ours / pairs[0].theirs
    return _decided(
        claim,
        results,
        cell,
        ratio,
        Interval(ratio, ratio, ratio, claim.decided_by, claim.confidence, len(pairs)),
        records=[record for pair in pairs for record in pair.records],
        evidence={},
        caveats=["counted, so the interval has no width"],
    )


def _speedup(claim: Claim, results: ResultSet, cell: Cell, evidence: bool) -> Verdict:
    del evidence
    size = claim.batch_size or 1
    for planned in cell.points:
        baseline = baseline_of(claim, results.expansion, cell, planned)
        if baseline is None:
            continue
        record = results.record(planned.point.point_id, "latency", baseline.point_id)
        value = record.get("speedup", batch_size=size) if record else None
        if record is not None and value is not None:
            break
    else:
        what = f"speed-up of {cell.candidate} over {claim.baseline} at batch {size}"
        return _unmeasured(results, cell, what)
    caveats = list(record.warnings)
    promised = record.get("promised_speedup", batch_size=size)
    if promised is not None:
        caveats.append(f"the MACs of the same weights and inputs promise {promised.value:.2f}x")
    return _decided(
        claim,
        results,
        cell,
        value.value,
        _stated(value, claim),
        records=[record],
        evidence={},
        caveats=caveats,
        n=value.n or 0,
    )


def _stated(value: Value, claim: Claim) -> Interval | None:
    """The interval that a record states, if it is of the kind that decides this claim."""
    fits = value.method == claim.decided_by and value.confidence in {None, claim.confidence}
    if value.low is None or value.high is None or not fits:
        return None
    return Interval(
        value.value, value.low, value.high, claim.decided_by, claim.confidence, value.n or 0
    )


def _decided(
    claim: Claim,
    results: ResultSet,
    cell: Cell,
    estimate: float,
    interval: Interval | None,
    *,
    records: Sequence[Record],
    evidence: Mapping[str, Interval],
    caveats: Sequence[str],
    n: int = 1,
) -> Verdict:
    threshold = claim.threshold
    if interval is None:
        outcome, reason = "undecided", f"single: no interval (n = {n})"
    else:
        n = interval.n
        outcome = judge(interval, threshold)
        side = {
            "holds": "the whole interval is",
            "refuted": "no part of the interval is",
            "undecided": "only part of the interval is",
        }[outcome]
        reason = f"{side} {threshold.text} ({interval.method}, n = {n})"
    return cell.verdict(
        outcome=outcome,
        reason=reason,
        estimate=estimate,
        interval=interval,
        n=n,
        evidence=dict(evidence),
        caveats=tuple(caveats),
        records=tuple(dict.fromkeys(_name(results, record) for record in records)),
    )


def _unmeasured(results: ResultSet, cell: Cell, what: str) -> Verdict:
    if not cell.points:
        return cell.verdict(outcome="unmeasured", reason="the suite skips or excludes every point")
    ids = {planned.point.point_id for planned in cell.points}
    failed = any(record.point_id in ids for record in results.failed)
    reason = f"{what}: not measured together on any seed{' (a point failed)' if failed else ''}"
    return cell.verdict(outcome="unmeasured", reason=reason)


def _name(results: ResultSet, record: Record) -> str:
    return results.store.path_for(record).relative_to(results.store.root).as_posix()
