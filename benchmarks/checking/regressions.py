"""What got worse than the accepted reference, and what merely changed.

Red are only what a change of code can be blamed for on any machine: parameters, MACs at a declared
k, a large loss of accuracy, a failed point. Weights differ between processors, so what follows from
learned weights (MACs of learned budgets, ratios, verdicts) is printed and never red.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.statistics.intervals import paired_t

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.records import Record, Value
    from benchmarks.results import Found, ResultSet

ACCURACY_LOSS = 0.02
MACS_TOLERANCE = 1e-9
"""Relative; room for the order of a floating-point mean, and for nothing else."""
CHANGE_SHOWN = 0.01
"""Relative change of learned MACs, or of a ratio without an interval, from which it is printed."""


@dataclass(frozen=True)
class Change:
    """One difference from the reference.

    Attributes:
        kind: parameters, macs_at_k, accuracy, failed (all red); macs, speedup, verdict, missing,
            new, architecture (never red).
        what: label, data set, seed or setting.
        reference, current: the two sides, as text.
        red: whether it is a regression.
    """

    kind: str
    what: str
    reference: str
    current: str
    red: bool


def compare(reference: ResultSet, current: ResultSet) -> list[Change]:
    """Every difference that `check` prints, regressions first.

    Failed points are regressions whether or not the reference knows them; everything else is
    compared where both sides have a successful record.
    """
    changes = [*failures(current)]
    before = {_identity(f.record): f for f in reference.found if f.record.status == "ok"}
    after = {_identity(f.record): f for f in current.found if f.record.status == "ok"}
    for identity, found in before.items():
        now = after.get(identity)
        if now is not None:
            changes += _of_record(found.record, now)
    changes += _accuracies(before.values(), after.values())
    failed = {_identity(record) for record in current.failed}
    changes += _presence("missing", set(before) - set(after) - failed, before)
    changes += _presence("new", set(after) - set(before), after)
    return sorted(changes, key=lambda change: not change.red)


def failures(current: ResultSet) -> Iterator[Change]:
    """The failed records of a result set, each one a regression."""
    for found in current.found:
        failure = found.record.failure
        if found.record.status == "failed":
            text = f"{failure.type}: {failure.message}" if failure else "failed"
            what = f"{_what(found)}, {found.record.meter}"
            yield Change("failed", what, "", text.splitlines()[0], red=True)


def _identity(record: Record) -> tuple[str, str, str | None]:
    return record.point_id, record.meter, record.baseline_point_id


def _of_record(before: Record, now: Found) -> Iterator[Change]:
    after, what = now.record, _what(now)
    # an architecture that is itself chosen from trained weights differs between processors
    learned = MODELS.get(now.wanted.point.model).source == "macs"
    for old in before.values:
        new = after.get(old.name, **old.context)
        if new is None:
            continue
        if old.name == "parameters" and old.value != new.value:
            kind = "architecture" if learned else "parameters"
            yield Change(kind, what, f"{old.value:,.0f}", f"{new.value:,.0f}", red=not learned)
        elif old.name == "macs_at_k" and not _same(old, new, MACS_TOLERANCE):
            kind = "architecture" if learned else "macs_at_k"
            setting = f"{what}, k = {old.context.get('k', '?')}"
            yield Change(kind, setting, f"{old.value:,.0f}", f"{new.value:,.0f}", red=not learned)
        elif old.name == "macs" and old.context.get("stat") == "mean":
            if not _same(old, new, CHANGE_SHOWN):
                yield Change("macs", what, f"{old.value:,.0f}", f"{new.value:,.0f}", red=False)
        elif old.name == "speedup" and _apart(old, new):
            setting = f"{what}, batch {old.context.get('batch_size', '?')}"
            yield Change("speedup", setting, _ratio(old), _ratio(new), red=False)


def _accuracies(before: Iterable[Found], after: Iterable[Found]) -> Iterator[Change]:
    """Mean accuracy over seeds: red if it fell by much and left the reference's interval."""
    old, new = _by_group(before), _by_group(after)
    for group, reference in old.items():
        common = sorted(reference.keys() & new.get(group, {}).keys())
        if not common:
            continue
        was = math.fsum(reference[seed].value for seed in common) / len(common)
        now = math.fsum(new[group][seed].value for seed in common) / len(common)
        low, high = _interval_of_mean(list(reference.values()))
        if was - now > ACCURACY_LOSS and now < low:
            sides = f"{was:.4f} [{low:.4f}, {high:.4f}]", f"{now:.4f}"
            yield Change("accuracy", f"{group[1]}, mean of {len(common)} seed(s)", *sides, red=True)


def _interval_of_mean(values: Sequence[Value]) -> tuple[float, float]:
    """Over seeds; of a single run, its own interval."""
    if len(values) > 1:
        interval = paired_t([value.value for value in values])
        return interval.low, interval.high
    (only,) = values
    return (
        only.value if only.low is None else only.low,
        only.value if only.high is None else only.high,
    )


def _by_group(found: Iterable[Found]) -> dict[tuple[str, str], dict[int, Value]]:
    """The accuracy of each seed, by (group id, text)."""
    groups: dict[tuple[str, str], dict[int, Value]] = defaultdict(dict)
    for item in found:
        value = item.record.get("accuracy")
        if item.record.meter == "accuracy" and value is not None:
            group = item.record.group_id, _what(item, with_seed=False)
            groups[group][item.record.seed] = value
    return groups


def _presence(
    kind: str,
    identities: set[tuple[str, str, str | None]],
    found: Mapping[tuple[str, str, str | None], Found],
) -> Iterator[Change]:
    """One line for each point that one side lacks, naming its meters."""
    meters: dict[str, list[str]] = defaultdict(list)
    for identity in found:
        if identity in identities:
            meters[_what(found[identity])].append(identity[1])
    for what, names in meters.items():
        text = ", ".join(names)
        sides = (text, "") if kind == "missing" else ("", text)
        yield Change(kind, what, *sides, red=False)


def _same(old: Value, new: Value, tolerance: float) -> bool:
    return math.isclose(old.value, new.value, rel_tol=tolerance)


def _apart(old: Value, new: Value) -> bool:
    """Whether the intervals do not touch; without intervals, whether the values differ."""
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return not _same(old, new, CHANGE_SHOWN)
    return old.high < new.low or new.high < old.low


def _ratio(value: Value) -> str:
    if value.low is None or value.high is None:
        return f"{value.value:.2f}x"
    return f"{value.value:.2f}x [{value.low:.2f}, {value.high:.2f}]"


def _what(found: Found, *, with_seed: bool = True) -> str:
    planned = found.wanted.planned
    axes = "".join(f", {k} = {v}" for k, v in planned.axes.items() if k != "seed")
    seed = f", seed {planned.point.seed}" if with_seed else ""
    return f"{planned.point.label} on {planned.point.dataset}{axes}{seed}"
