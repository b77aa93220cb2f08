"""From the files of a data set to rows: texts and label ids."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data.archives import matching_members, read_member
from benchmarks.data.card import Card, Reader
from benchmarks.data.parquet import read_columns
from benchmarks.data.sources import PackageSource, ParquetPart, ParquetSource, Part
from benchmarks.errors import DataError

_SHOWN = 10


@dataclass(frozen=True)
class Rows:
    """All rows of a data set, part after part in the card's order; the index is the row id.

    Attributes:
        texts: one tuple of one or two texts a row.
        labels: index into the card's classes.
        parts: for each part, its row ids.
        n_unlabelled: rows left out since they have no label.
    """

    texts: list[tuple[str, ...]]
    labels: list[int]
    parts: dict[str, range]
    n_unlabelled: int = 0

    def same(self, row: int) -> tuple[str, ...]:
        """What is equal for rows with the same text, or the same two texts."""
        return tuple(sorted(" ".join(text.lower().split()) for text in self.texts[row]))


def read_rows(card: Card, path: Path) -> Rows:
    """Reads every part of a data set.

    Args:
        card: whose source is a package or Parquet files in hand.
        path: what `data_path` gives.

    Raises:
        DataError: a file is missing inside the package, a line has too few columns, a label is
            none of the card's, or the number of rows is not the card's.
    """
    source, reader = card.source, card.reader
    if reader is None or not isinstance(source, PackageSource | ParquetSource):
        raise DataError(f"data set '{card.name}' has no rows to read ({card.source_text})")
    texts: list[tuple[str, ...]] = []
    labels: list[int] = []
    parts: dict[str, range] = {}
    n_unlabelled = 0
    for part in source.parts:
        start = len(labels)
        if isinstance(part, ParquetPart):
            for label, text in _parquet_rows(card, reader, part, path):
                if label is None:
                    n_unlabelled += 1
                else:
                    labels.append(label)
                    texts.append(text)
        else:
            for label, text in _package_rows(card, reader, part, path):
                labels.append(label)
                texts.append(text)
            if len(labels) - start != part.rows:
                raise DataError(
                    f"{path.name}:{part.path} has {len(labels) - start} rows, the card of "
                    f"'{card.name}' says {part.rows}"
                )
        parts[part.name] = range(start, len(labels))
    return Rows(texts, labels, parts, n_unlabelled)


def _parquet_rows(
    card: Card, reader: Reader, part: ParquetPart, folder: Path
) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    """Label id (None: the row has no label) and texts of each row."""
    columns = [str(column) for column in reader.text]
    for file in part.files:
        path, n = folder / file.path, 0
        for number, text in read_columns(path, str(reader.label), columns, card.classes, card.name):
            if number == reader.drop_label and number is not None:
                yield None, text
            elif number is None or not 0 <= number < len(card.classes):
                raise DataError(
                    f"{path.name}, row {n}: label {number} is out of range; '{card.name}' has "
                    f"0 to {len(card.classes) - 1}"
                )
            else:
                yield number, _joined(reader, text)
            n += 1
        if n != file.rows:
            raise DataError(f"{path.name} has {n} rows, '{card.run_name}' must have {file.rows}")


def _package_rows(
    card: Card, reader: Reader, part: Part, package: Path
) -> Iterator[tuple[int, tuple[str, ...]]]:
    if reader.format == "files":
        for name, content in matching_members(package, part.path):
            where = f"{package.name}:{name}"
            fields = [name.split("/")[-2], _decode(reader, content, where)]
            yield _row(card, reader, fields, where)
        return
    where = f"{package.name}:{part.path}"
    text = _decode(reader, read_member(package, part.path), where)
    for line, fields in _lines(reader, text, where):
        yield _row(card, reader, fields, f"{where}, line {line}")


def _decode(reader: Reader, content: bytes, where: str) -> str:
    for encoding in reader.encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            failed = error
    raise DataError(f"{where} is not {' or '.join(reader.encodings).upper()}: {failed}") from failed


def _lines(reader: Reader, content: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (from 1) and fields of each row that `keep` lets through; blank lines are none."""
    needed = max(_numbers(reader.label, *reader.text), default=0) + 1
    if reader.keep is not None:
        needed = max(needed, reader.keep.column + 1)
    for number, fields in _split(reader, content):
        if number <= reader.header_lines or not any(fields):
            continue
        if len(fields) < needed:
            raise DataError(f"{where}, line {number}: {len(fields)} columns, needs {needed}")
        if reader.keep is None or fields[reader.keep.column] == reader.keep.value:
            yield number, fields


def _split(reader: Reader, content: str) -> Iterator[tuple[int, list[str]]]:
    if reader.format == "tsv":
        # not splitlines(): it would also split at form feeds and other rare characters
        for number, line in enumerate(content.split("\n"), 1):
            yield number, line.rstrip("\r").split("\t")
    else:
        rows = csv.reader(io.StringIO(content, newline=""))
        for fields in rows:
            yield rows.line_num, fields


def _row(card: Card, reader: Reader, fields: list[str], where: str) -> tuple[int, tuple[str, ...]]:
    (at,) = _numbers(reader.label)
    value = fields[at]
    if reader.bins is not None and reader.score_range is not None:
        label = _bin(reader.bins, reader.score_range, value, where)
    else:
        known = reader.labels if reader.labels is not None else {c: c for c in card.classes}
        if value not in known:
            names = ", ".join(map(repr, list(known)[:_SHOWN]))
            raise DataError(f"{where}: label {value!r} is out of range; known: {names}")
        label = card.classes.index(known[value])
    return label, _joined(reader, tuple(fields[column] for column in _numbers(*reader.text)))


def _joined(reader: Reader, texts: tuple[str, ...]) -> tuple[str, ...]:
    return (" ".join(text for text in texts if text),) if reader.join else texts


def _numbers(*columns: int | str) -> list[int]:
    """The card has made sure that the columns of a package's files are numbers."""
    return [column for column in columns if isinstance(column, int)]


def _bin(bins: tuple[float, ...], score_range: tuple[float, float], value: str, where: str) -> int:
    low, high = score_range
    try:
        score = float(value)
    except ValueError:
        score = float("nan")
    if not low <= score <= high:
        raise DataError(f"{where}: score {value!r} is out of range; it must lie in [{low}, {high}]")
    return bisect_left(bins, score)
