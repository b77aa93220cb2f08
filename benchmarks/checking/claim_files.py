"""The claim file: a statement about efficiency, its source, and what would decide it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

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
from benchmarks.planning.suite import Suite, Sweep
from benchmarks.toml_files import read_toml, shown

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
        if self.baseline in self.candidates:
            raise ValueError(f"candidates: '{self.baseline}' is the baseline itself")
        return self

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def check_names(self, suite: Suite) -> Sweep:
        """The sweep that decides this claim.

        Raises:
            InvalidFileError: the suite has no such sweep, label or data set; or it never measures
                the quantity, or not at this batch size.
        """
        sweeps = {sweep.name: sweep for sweep in suite.sweeps}
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
        self._check_measured(suite)
        return sweep

    def _check_measured(self, suite: Suite) -> None:
        """In any sweep, for a point of two sweeps has the records of both."""
        meter = MEASURED_BY[self.quantity]
        measuring = [sweep.name for sweep in suite.sweeps if meter in sweep.meters]
        if not measuring:
            self._refuse(
                "quantity",
                f"{self.quantity} is what the meter '{meter}' measures, and no sweep of "
                f"'{self.suite}' has it",
            )
        options = (suite.options_for(name, meter) for name in measuring)
        sizes = sorted({size for o in options for size in o.get("batch_sizes", BATCH_SIZES)})
        if self.batch_size is not None and self.batch_size not in sizes:
            self._refuse(
                "batch_size",
                f"'{self.suite}' times no batch of {self.batch_size}; it has "
                f"{', '.join(map(str, sizes))}",
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
        InvalidFileError: one of the files is wrong.
    """
    claims = [
        load_claim(path) for path in sorted((folder or resource_dir("claims")).glob("*.toml"))
    ]
    return [claim for claim in claims if suite is None or claim.suite == suite]


def _known(location: tuple[int | str, ...]) -> list[str]:
    parts: dict[str, type[_Strict]] = {"source": Source, "threshold": Threshold}
    model = parts.get(str(location[0]), Claim) if location else Claim
    return [field.alias or name for name, field in model.model_fields.items()]
