"""The claim file: a statement about efficiency, its source, and what would decide it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from benchmarks.errors import InvalidFileError, suggest
from benchmarks.meters.specs import BATCH_SIZES
from benchmarks.paths import resource_dir
from benchmarks.planning.suite import suite_names
from benchmarks.toml_files import read_toml, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.planning.expand import Expansion, PlannedPoint
    from benchmarks.planning.points import Point
    from benchmarks.planning.suite import Suite, Sweep

    _Pair = tuple[PlannedPoint, Point]

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]
Quantity = Literal["accuracy_difference", "macs_ratio", "parameters_ratio", "speedup"]
Method = Literal["paired_t", "paired_log_ratio_t", "counted", "log_ratio_t"]

DECIDES: dict[Quantity, Method] = {
    "accuracy_difference": "paired_t",
    "macs_ratio": "paired_log_ratio_t",
    "parameters_ratio": "counted",
    "speedup": "log_ratio_t",
}
"""The one interval whose coverage was simulated for each quantity; what is counted needs none."""

MEASURED_BY: dict[Quantity, str] = {
    "accuracy_difference": "accuracy",
    "macs_ratio": "flops",
    "parameters_ratio": "memory",
    "speedup": "latency",
}
"""The meter that each quantity is read from."""

STATED = 0.95
"""Confidence of the interval that a latency record states; its blocks are not kept for another."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """Where the claim comes from."""

    paper: Text
    section: Text = Field(description="table or section")
    certainty: Text = Field(description="how sure it is that the paper says so")


class Threshold(_Strict):
    """The side on which the whole interval must lie."""

    direction: Literal["at least", "at most", "above", "below"]
    value: float = Field(allow_inf_nan=False, description="fraction for accuracy, else a ratio")
    why: Text = Field(description="where the number comes from, and whether it is ours")

    @property
    def text(self) -> str:
        """E.g. "at least -0.01"."""
        return f"{self.direction} {self.value:g}"


class Claim(_Strict):
    """A validated claim file.

    Quantities, each of a candidate and its baseline:

    - `accuracy_difference`: test accuracy of the candidate minus the baseline's (fraction).
    - `macs_ratio`: the candidate's whole-model MACs, mean over the test inputs, over the baseline's.
    - `parameters_ratio`: the candidate's number of parameters over the baseline's.
    - `speedup`: the baseline's time over the candidate's at `batch_size`.
    """

    schema_version: Literal[1] = Field(alias="schema")
    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: Text
    statement: Text
    source: Source
    suite: Text = Field(description="the suite that decides it")
    sweep: Text
    baseline: Text = Field(description="label of the variant that candidates are compared with")
    candidates: Names = Field(description="labels")
    datasets: Names
    quantity: Quantity
    batch_size: int | None = Field(default=None, ge=1, strict=True)
    threshold: Threshold
    decided_by: Method
    confidence: float = Field(default=0.95, gt=0, lt=1)

    _path: Path = PrivateAttr(default=Path("claim.toml"))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.decided_by != DECIDES[self.quantity]:
            raise ValueError(
                f"decided_by: {self.quantity} is decided by {DECIDES[self.quantity]}, not "
                f"{self.decided_by}"
            )
        if (self.batch_size is not None) != (self.quantity == "speedup"):
            need = "needs" if self.quantity == "speedup" else "takes no"
            raise ValueError(f"batch_size: {self.quantity} {need} batch_size")
        if self.quantity == "speedup" and self.confidence != STATED:
            raise ValueError(
                f"confidence: a record states the interval of speedup at {STATED} alone, not "
                f"{self.confidence}"
            )
        value = self.threshold.value
        if self.quantity == "accuracy_difference" and not -1 <= value <= 1:
            raise ValueError(
                "threshold.value: an accuracy_difference is a fraction from -1 to 1 (0.01 is one "
                f"point), not {value}"
            )
        if self.quantity != "accuracy_difference" and value <= 0:
            raise ValueError(f"threshold.value: a ratio is above 0, not {value}")
        for key, names in (("candidates", self.candidates), ("datasets", self.datasets)):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{key}: '{name}' is named twice; once is enough")
        if self.baseline in self.candidates:
            raise ValueError(f"candidates: '{self.baseline}' is the baseline itself")
        return self

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def check_suite_name(self) -> None:
        """Raises InvalidFileError unless the repository has the suite; a path is no name."""
        known = suite_names()
        if self.suite not in known:
            self._refuse("suite", suggest(self.suite, known, kind="suite"))

    def check_names(self, expansion: Expansion) -> Sweep:
        """The sweep that decides this claim, of its expanded suite.

        Raises:
            InvalidFileError: the suite has no such sweep, label or data set; or it never measures
                the quantity of both sides, not against this baseline, or not at this batch size.
        """
        sweeps = {sweep.name: sweep for sweep in expansion.suite.sweeps}
        if self.sweep not in sweeps:
            self._refuse("sweep", suggest(self.sweep, sweeps, kind="sweep"))
        sweep = sweeps[self.sweep]
        labels = [variant.label for variant in sweep.variants]
        for key, names in (("baseline", (self.baseline,)), ("candidates", self.candidates)):
            for name in names:
                if name not in labels:
                    self._refuse(key, suggest(name, labels, kind="label"))
        for name in self.datasets:
            if name not in sweep.datasets:
                self._refuse("datasets", suggest(name, sweep.datasets, kind="data set"))
        self._check_measured(expansion)
        return sweep

    def _check_measured(self, expansion: Expansion) -> None:
        """For points, not for the sweep: one that stands in two sweeps has the records of both."""
        meter = MEASURED_BY[self.quantity]
        if not any(meter in sweep.meters for sweep in expansion.suite.sweeps):
            self._refuse(
                "quantity",
                f"{self.quantity} is what the meter '{meter}' measures, and no sweep of "
                f"'{self.suite}' has it",
            )
        meters = {planned.point.point_id: planned.meters for planned in expansion.points}
        found = self._pairs(expansion)
        if not found:
            self._refuse(
                "candidates", f"sweep '{self.sweep}' skips or excludes every pair of this claim"
            )
        timed = self.quantity == "speedup"  # a pair's record is the candidate's
        for (candidate, dataset), pairs in found.items():
            measured = [
                (ours, theirs)
                for ours, theirs in pairs
                if meter in ours.meters and (timed or meter in meters[theirs.point_id])
            ]
            if not measured:
                both = "" if timed else f" and '{self.baseline}'"
                self._refuse(
                    "quantity",
                    f"{self.quantity} is what the meter '{meter}' measures, and no sweep with it "
                    f"has the points of '{candidate}'{both} on {dataset}",
                )
            if timed:
                self._check_timed(expansion.suite, f"'{candidate}' on {dataset}", measured)

    def _pairs(self, expansion: Expansion) -> dict[tuple[str, str], list[_Pair]]:
        """By (candidate, data set); what the suite skips or excludes on purpose is left out."""
        from benchmarks.checking.places import baseline_of, cells

        found: dict[tuple[str, str], list[_Pair]] = defaultdict(list)
        for cell in cells(self, expansion):
            for planned in cell.points:
                baseline = baseline_of(self, expansion, cell, planned)
                if baseline is not None:
                    found[cell.candidate, cell.dataset].append((planned, baseline))
        return found

    def _check_timed(self, suite: Suite, what: str, pairs: Sequence[_Pair]) -> None:
        """Pairs are timed against one baseline alone, at the sizes of the sweep that asks first."""
        fitting = [
            ours
            for ours, theirs in pairs
            if ours.baseline is not None and ours.baseline.point_id == theirs.point_id
        ]
        if not fitting:
            others = sorted({ours.baseline.label for ours, _ in pairs if ours.baseline})
            if not others:
                self._refuse("candidates", f"{what} is the same point as '{self.baseline}'")
            against = " and ".join(f"'{label}'" for label in others)
            self._refuse(
                "baseline", f"{what} is timed against {against} alone, not '{self.baseline}'"
            )
        sizes: set[int] = set()
        timing = {sweep.name for sweep in suite.sweeps if "latency" in sweep.meters}
        for planned in fitting:
            asking = next(use.sweep for use in planned.uses if use.sweep in timing)
            sizes.update(suite.options_for(asking, "latency").get("batch_sizes", BATCH_SIZES))
        if self.batch_size not in sizes:
            self._refuse(
                "batch_size",
                f"'{self.suite}' times no batch of {self.batch_size} for {what}; it has "
                f"{', '.join(map(str, sorted(sizes)))}",
            )

    def _refuse(self, key: str, text: str) -> None:
        raise InvalidFileError(f"{shown(self._path)}: {key}: {text}")


def load_claim(path: Path) -> Claim:
    """Reads and validates one claim file.

    Raises:
        InvalidFileError: one line for each problem, with file, key path and what was found.
    """
    values = read_toml(path)
    try:
        claim = Claim.model_validate(values)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            where = ".".join(str(part) for part in item["loc"])
            message = item["msg"].removeprefix("Value error, ")
            if item["type"] == "extra_forbidden":
                message = suggest(str(item["loc"][-1]), _known(item["loc"][:-1]), kind="key")
            elif item["type"] not in {"missing", "value_error"}:
                message += f", not {item['input']!r}"
            lines.append(f"{shown(path)}: {where + ': ' if where else ''}{message}")
        raise InvalidFileError("\n".join(lines)) from error
    if claim.id != path.stem:
        raise InvalidFileError(
            f"{shown(path)}: id: '{claim.id}' must be the file's name, '{path.stem}'"
        )
    claim._path = path  # noqa: SLF001 - the file is no part of its own content
    return claim


def load_claims(suite: str | None = None, folder: Path | None = None) -> list[Claim]:
    """Every claim, or those that one suite decides, in the order of their file names.

    Raises:
        InvalidFileError: one of the files is wrong, or names a suite that the repository has not.
    """
    claims = [
        load_claim(path) for path in sorted((folder or resource_dir("claims")).glob("*.toml"))
    ]
    for claim in claims:
        claim.check_suite_name()
    return [claim for claim in claims if suite is None or claim.suite == suite]


def _known(location: tuple[int | str, ...]) -> list[str]:
    parts: dict[str, type[_Strict]] = {"source": Source, "threshold": Threshold}
    model = parts.get(str(location[0]), Claim) if location else Claim
    return [field.alias or name for name, field in model.model_fields.items()]
