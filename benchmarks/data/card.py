"""The card of a data set: where it comes from, how it is read and split, what it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from benchmarks.data.generated import GeneratedTask
from benchmarks.data.image_reader import ImageReader
from benchmarks.data.sources import (
    GeneratedSource,
    HubSource,
    PackageSource,
    ParquetSource,
    Strict,
    explain,
)
from benchmarks.errors import InvalidFileError, suggest
from benchmarks.paths import resource_dir
from benchmarks.toml_files import read_toml, shown

Share = Annotated[float, Field(gt=0, lt=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Column = Annotated[int, Field(ge=0)] | str


class Licence(Strict):
    """Terms of the package that carries the data, and of the data themselves."""

    package: str
    data: str


class Keep(Strict):
    """Only the rows that have this value in this column."""

    column: int = Field(ge=0)
    value: str


class Reader(Strict):
    """How a part becomes rows. Columns are counted from 0; those of Parquet files have names."""

    format: Literal["tsv", "csv", "files", "parquet"] = Field(
        description="tsv: split at tabs, no quoting; csv: commas and double quotes; files: each file "
        "is a row of two columns, its folder's name and its text; parquet: labels are the hub's "
        "numbers, which count the card's classes"
    )
    header_lines: int = Field(default=0, ge=0)
    encodings: tuple[Literal["utf-8", "latin-1"], ...] = Field(
        default=("utf-8",), min_length=1, description="tried in this order on each file"
    )
    label: Column
    text: tuple[Column, ...] = Field(min_length=1, max_length=2)
    join: bool = Field(default=False, description="the columns are one text, joined by a space")
    keep: Keep | None = None
    labels: dict[str, str] | None = Field(
        default=None, description="value in the file -> class; without it the value is the class"
    )
    drop_label: int | None = Field(
        default=None, description="parquet: rows with this label have none; left out and counted"
    )
    bins: tuple[float, ...] | None = Field(
        default=None, description="the label is a number; upper bounds of all classes but the last"
    )
    score_range: tuple[float, float] | None = Field(default=None, description="with `bins`")


class Ratings(Strict):
    """A file of the package that says how far the people who rated each row were apart.

    One line a row, in the order of the rows, fields split at tabs, columns counted from 0.
    """

    path: str
    key: int = Field(ge=0, description="column that must be equal to the one of the rows' own file")
    spread: int = Field(ge=0, description="column of the standard deviation of a row's ratings")


class SplitRule(Strict):
    """A part's name (an official split), or the share of each label cut from the end of the rest.

    The rule in full is in `benchmarks.data.splits`.
    """

    train: str
    validation: Share | str
    test: Share | str
    unique: bool = Field(
        default=False, description="first keep only one of the training part's rows with one text"
    )


class Counts(Strict):
    """Rows of each split, and the training rows dropped since their text is in another split."""

    train: int
    validation: int
    test: int
    dropped: int


class Lengths(Strict):
    """Tokens of a training input, in this benchmark's own vocabulary, before truncation."""

    median: int
    p90: int


class Yardstick(Strict):
    """What a simple method reaches, so that a model's result can be judged."""

    name: str
    value: float
    metric: str = "accuracy"
    split: str
    source: str = Field(description="where it was measured")


class Card(Strict):
    """One data set."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    title: str
    task: Literal["single", "pair", "image"]
    classes: tuple[str, ...] = Field(min_length=2, description="in label order")
    licence: Licence
    source: PackageSource | GeneratedSource | GeneratedTask | HubSource | ParquetSource = Field(
        discriminator="kind"
    )
    reader: Reader | None = None
    images: ImageReader | None = Field(default=None, description="of images, instead of `reader`")
    splits: SplitRule | None = None
    counts: Counts | None = None
    lengths: Lengths | None = None
    max_length: int | None = Field(
        default=None,
        ge=1,
        description="tokens that a run should keep of a text, or side of an image in pixels; a hint",
    )
    stand_in_for: tuple[str, ...] = Field(
        default=(), description="paper data sets that this one is a stand-in for"
    )
    partial: str = Field(default="", description="what is missing of the original; empty: nothing")
    ratings: Ratings | None = None
    texts_may_be_shown: bool = Field(
        default=False, description="the licence allows single texts or images in committed reports"
    )
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
    def computes_splits(self) -> bool:
        """Whether row ids are computed when read; else they are committed, or locked."""
        return isinstance(self.source, ParquetSource) and self.source.origin == "mirror"

    @property
    def role(self) -> str:
        """Whether it is a diagnostic or a stand-in, for tables and reports; empty where neither."""
        if self.is_diagnostic:
            return "diagnostic"
        return f"stand-in for {', '.join(self.stand_in_for)}" if self.stand_in_for else ""

    @property
    def is_diagnostic(self) -> bool:
        """Whether it is a generated task of known difficulty, which is no real data."""
        return isinstance(self.source, GeneratedTask)

    @property
    def is_generated(self) -> bool:
        """Whether this program makes its inputs, so that there is nothing to fetch."""
        return isinstance(self.source, GeneratedSource | GeneratedTask)

    @property
    def run_name(self) -> str:
        """What results are called: a mirror's set never goes by the plain name."""
        return (isinstance(self.source, ParquetSource) and self.source.run_as) or self.name

    @property
    def source_text(self) -> str:
        """Where the data come from, in a few words."""
        source = self.source
        if isinstance(source, PackageSource):
            return f"{source.package} {source.version} (PyPI)"
        if isinstance(source, HubSource):
            return f"{source.repo} (hub)"
        if isinstance(source, ParquetSource):
            at = f"{source.repo} at {source.revision[:12]}" if source.revision else source.repo
            return f"{at} (hub)" if source.origin == "hub" else f"a local mirror of {at}"
        return "generated"

    @property
    def download_mb(self) -> float:
        """Megabytes to download, where known; 0 where nothing has to be."""
        return self.source.size_mb if isinstance(self.source, PackageSource) else 0.0

    def n_rows(self, split: Literal["train", "validation", "test"]) -> int:
        """Rows of a split, by the card's own count; 0 while a hub set is unverified."""
        if isinstance(self.source, GeneratedSource):
            return self.source.inputs if split == "test" else 0
        if isinstance(self.source, GeneratedTask):
            return int(getattr(self.source.rows, split))
        counts: dict[str, int] = self.counts.model_dump() if self.counts else {}
        return counts.get(split, 0)

    @property
    def is_image(self) -> bool:
        """Whether its inputs are images."""
        return self.task == "image"

    @property
    def channels(self) -> int:
        """Of its images: 1 or 3; 0 for texts."""
        return self.images.channels if self.images else 0

    @property
    def n_parts(self) -> int:
        """Texts per input: 1 or 2."""
        return 2 if self.task == "pair" else 1

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes: a class is named twice")
        if self.is_image != (self.images is not None):
            raise ValueError("images: task 'image' needs this table, and only it has one")
        if isinstance(self.source, GeneratedSource | GeneratedTask):
            _check_generated(self)
            return self
        if not ((self.images if self.is_image else self.reader) and self.splits):
            table = "images" if self.is_image else "reader"
            raise ValueError(f"real data need the tables {table} and splits")
        if (self.counts is None) != isinstance(self.source, HubSource):
            raise ValueError(
                "a packaged data set needs the table counts; a hub set's come from its lock"
            )
        if self.is_image:
            _check_images(self)
        else:
            _check_columns(self)
        parts = [part.name for part in self.source.parts]
        if len(set(parts)) != len(parts):
            raise ValueError("source.parts: a part is named twice")
        for key, rule in self.splits.model_dump().items():
            if isinstance(rule, str) and rule not in parts:
                raise ValueError(f"splits.{key}: {suggest(rule, parts, kind='part')}")
        return self


def _check_generated(card: Card) -> None:
    source = card.source
    if card.reader or card.splits or card.counts or card.task == "pair":
        raise ValueError(
            "source.kind: generated data are single texts or images without reader, splits and counts"
        )
    if isinstance(source, GeneratedTask):
        needed = source.task.n_classes
        if card.is_image:
            raise ValueError("task: a diagnostic is made of single texts")
        if len(card.classes) != needed:
            raise ValueError(
                f"classes: task '{source.task.name}' has {needed}, not {len(card.classes)}"
            )
    elif isinstance(source, GeneratedSource):
        if card.is_image == (source.vocabulary is not None):
            raise ValueError("source.vocabulary: random tokens need one, random images have none")
        if card.images and card.images.format != "generated":
            raise ValueError("images.format: of generated images it is 'generated'")


FORMATS = {
    PackageSource: ("csv",),
    HubSource: ("parquet",),
    ParquetSource: ("parquet", "idx", "folders"),
}
"""Forms in which images come from each kind of source."""


def _check_images(card: Card) -> None:
    assert card.images is not None  # noqa: S101 - the caller has looked
    if card.reader is not None or card.ratings is not None:
        raise ValueError("reader, ratings: are for texts; of images the table is `images`")
    known = FORMATS[type(card.source)]
    if card.images.format not in known:
        raise ValueError(
            f"images.format: from this kind of source images come as {' or '.join(known)}, "
            f"not '{card.images.format}'"
        )


def _check_columns(card: Card) -> None:
    reader = card.reader
    assert reader is not None  # noqa: S101 - the caller has looked
    if reader.join and card.task == "pair":
        raise ValueError("reader.join: the two texts of a pair stay apart")
    if len(reader.text) != card.n_parts and not reader.join:
        raise ValueError(
            f"reader.text: task '{card.task}' takes {card.n_parts} column(s), "
            f"not {len(reader.text)}"
        )
    named = reader.format == "parquet"
    if named == isinstance(card.source, PackageSource):
        raise ValueError(
            "reader.format: 'parquet' goes with sources on the hub, and only with them"
        )
    kind = str if named else int
    if not all(isinstance(column, kind) for column in (reader.label, *reader.text)):
        what = "names" if named else "numbers"
        raise ValueError(f"reader.label, reader.text: columns of '{reader.format}' are {what}")
    _check_labels(reader, card.classes)


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
    values = read_toml(path)
    try:
        card = Card.model_validate(values, context={"folder": path.parent})
    except ValidationError as error:
        raise InvalidFileError(f"{shown(path)}: {explain(error, 'card')}") from error
    if isinstance(card.source, ParquetSource):
        raise InvalidFileError(
            f"{shown(path)}: source.kind: 'parquet' is what a hub card becomes; write 'hub' here, and "
            "what a local mirror holds into its mirror.toml"
        )
    if card.name != path.stem:
        raise InvalidFileError(
            f"{shown(path)}: name: is '{card.name}', but the file says '{path.stem}'"
        )
    return card


def find_card(name: str) -> Card:
    """The card called `name`, as it stands here and now.

    A hub card comes with what its lock says, or with what a local mirror says if there is one that
    serves it. `DATASETS.get` gives the card as written.

    Raises:
        UsageError: there is none; names its neighbours.
        DataError: FRUGALBENCH_DATA names no mirror.
        InvalidFileError: the mirror's manifest or the card's lock is wrong.
    """
    from benchmarks.catalog import DATASETS
    from benchmarks.data.locks import locked
    from benchmarks.data.mirror import mirrored

    card = DATASETS.get(name)
    return mirrored(card) or locked(card) or card
