"""Where in a suite stand the points that a claim compares."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.checking.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.checking.claim_files import Claim
    from benchmarks.planning.expand import Expansion, PlannedPoint, Use
    from benchmarks.planning.points import Point


@dataclass(frozen=True)
class Cell:
    """One data set and candidate (in one setting of the axes), and its points by seed."""

    dataset: str
    candidate: str
    setting: Mapping[str, Any]
    points: tuple[PlannedPoint, ...]

    def verdict(self, **found: Any) -> Verdict:
        """A verdict on this cell."""
        return Verdict(self.dataset, self.candidate, self.setting, **found)


def cells(claim: Claim, expansion: Expansion) -> Iterator[Cell]:
    """Every cell of a claim; one without points where the suite skips or excludes them all."""
    for dataset in claim.datasets:
        for candidate in claim.candidates:
            groups: dict[str, list[PlannedPoint]] = defaultdict(list)
            settings: dict[str, dict[str, Any]] = {}
            for planned, use in _places(expansion, claim.sweep, dataset):
                if use.label == candidate:
                    groups[planned.point.group_id].append(planned)
                    settings[planned.point.group_id] = _setting(use)
            for group, members in groups.items():
                yield Cell(dataset, candidate, settings[group], tuple(members))
            if not groups:
                yield Cell(dataset, candidate, {}, ())


def baseline_of(
    claim: Claim, expansion: Expansion, cell: Cell, planned: PlannedPoint
) -> Point | None:
    """The claim's baseline at the same data set, seed and setting.

    A model may lack an axis of the sweep; it then stands for every value of that axis.
    """
    for other, use in _places(expansion, claim.sweep, cell.dataset):
        shared = all(cell.setting.get(k, v) == v for k, v in _setting(use).items())
        if use.label == claim.baseline and other.point.seed == planned.point.seed and shared:
            return other.point
    return None


def _places(expansion: Expansion, sweep: str, dataset: str) -> Iterator[tuple[PlannedPoint, Use]]:
    """Every place of a sweep's points on one data set; equal points are planned once."""
    for planned in expansion.points:
        if planned.point.dataset == dataset:
            yield from ((planned, use) for use in planned.uses if use.sweep == sweep)


def _setting(use: Use) -> dict[str, Any]:
    return {name: value for name, value in use.axes.items() if name != "seed"}
