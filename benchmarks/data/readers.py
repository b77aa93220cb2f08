"""From the files inside a package to rows: texts and label ids."""

from __future__ import annotations

import csv
import io
import tarfile
import zipfile
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data.card import Card, PackageSource, Part, Reader
from benchmarks.errors import DataError

_SHOWN = 10


@dataclass(frozen=True)
class Rows:
    """All rows of a data set, part after part in the card's order; the index is the row id.

    Attributes:
        texts: one tuple of one or two texts a row.
        labels: index into the card's classes.
        parts: for each part, its row ids.
    """

    texts: list[tuple[str, ...]]
    labels: list[int]
    parts: dict[str, range]


def read_rows(card: Card, package: Path) -> Rows:
    """Reads every part of a packaged data set.

    Raises:
        DataError: a file is missing inside the package, a line has too few columns, a label is
            none of the card's, or the number of rows is not the card's.
    """
    if not isinstance(card.source, PackageSource) or card.reader is None:
        raise DataError(f"data set '{card.name}' is generated: it has no rows to read")
    texts: list[tuple[str, ...]] = []
    labels: list[int] = []
    parts: dict[str, range] = {}
    for part in card.source.parts:
        start = len(labels)
        where = f"{package.name}:{part.path}"
        for line, fields in _lines(card.reader, _decode(package, part), where):
            label, text = _row(card, card.reader, fields, f"{where}, line {line}")
            labels.append(label)
            texts.append(text)
        parts[part.name] = range(start, len(labels))
        if len(parts[part.name]) != part.rows:
            raise DataError(
                f"{where} has {len(parts[part.name])} rows, the card of '{card.name}' says "
                f"{part.rows}"
            )
    return Rows(texts, labels, parts)


def _decode(package: Path, part: Part) -> str:
    try:
        if package.name.endswith(".tar.gz"):
            with tarfile.open(package) as tar:
                stream = tar.extractfile(part.path)
                content = stream.read() if stream else b""
        else:
            with zipfile.ZipFile(package) as archive:
                content = archive.read(part.path)
    except KeyError as error:
        raise DataError(f"{package.name} holds no file {part.path}") from error
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"{package.name} is damaged: {error}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{package.name}:{part.path} is not UTF-8: {error}") from error


def _lines(reader: Reader, content: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (from 1) and fields of each row that `keep` lets through; blank lines are none."""
    needed = max(reader.label, *reader.text, reader.keep.column if reader.keep else 0) + 1
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
    value = fields[reader.label]
    if reader.bins is not None and reader.score_range is not None:
        label = _bin(reader.bins, reader.score_range, value, where)
    else:
        known = reader.labels if reader.labels is not None else {c: c for c in card.classes}
        if value not in known:
            names = ", ".join(map(repr, list(known)[:_SHOWN]))
            raise DataError(f"{where}: label {value!r} is out of range; known: {names}")
        label = card.classes.index(known[value])
    return label, tuple(fields[column] for column in reader.text)


def _bin(bins: tuple[float, ...], score_range: tuple[float, float], value: str, where: str) -> int:
    low, high = score_range
    try:
        score = float(value)
    except ValueError:
        score = float("nan")
    if not low <= score <= high:
        raise DataError(f"{where}: score {value!r} is out of range; it must lie in [{low}, {high}]")
    return bisect_left(bins, score)
