"""Reading Parquet files with the hub's columns and label numbers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import DataError

_BATCH = 10_000
_IMAGES = 500


def count_rows(path: Path) -> int:
    """Rows of a file, from its footer.

    Raises:
        DataError: it is no whole Parquet file.
    """
    with _damage(path), _opened(path) as file:
        return int(file.metadata.num_rows)


def read_columns(
    path: Path, label: str, texts: Sequence[str], classes: Sequence[str], name: str
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Label number and texts of each row, in order; a missing text is an empty one.

    Args:
        path: of the file.
        label: its column of whole numbers.
        texts: its columns of texts.
        classes: what the numbers mean; compared with the label names in the file, if it has any.
        name: of the data set, for messages.

    Raises:
        DataError: it is damaged, or has other columns, types or label names.
    """
    with _damage(path), _opened(path) as file:
        schema = file.schema_arrow
        _check(path, schema, [label, *texts], name)
        _check_names(path, schema, label, classes, name)
        for batch in file.iter_batches(batch_size=_BATCH, columns=[label, *texts]):
            columns = [batch.column(column).to_pylist() for column in (label, *texts)]
            for number, *found in zip(*columns, strict=True):
                yield number, tuple(text or "" for text in found)


def read_images(
    path: Path, label: str, image: str, classes: Sequence[str], name: str
) -> Iterator[tuple[Any, bytes]]:
    """Label number and content of the image file of each row, in order; empty where there is none.

    Args:
        path: of the file.
        label: its column of whole numbers.
        image: its column of image files: bytes, or the hub's structure with a field `bytes`.
        classes: as in `read_columns`.
        name: of the data set, for messages.

    Raises:
        DataError: it is damaged, or has other columns, types or label names.
    """
    with _damage(path), _opened(path) as file:
        schema = file.schema_arrow
        _check_label(path, schema, [label, image], name)
        inside = _check_image(path, schema, image, name)
        _check_names(path, schema, label, classes, name)
        for batch in file.iter_batches(batch_size=_IMAGES, columns=[label, image]):
            contents = batch.column(image).to_pylist()
            for number, content in zip(batch.column(label).to_pylist(), contents, strict=True):
                yield number, ((content or {}).get("bytes") if inside else content) or b""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        yield file


def _check(path: Path, schema: Any, needed: list[str], name: str) -> None:
    import pyarrow as pa

    _check_label(path, schema, needed, name)
    for column in needed[1:]:
        kind = schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f"{path.name}: column {column} holds {kind}, '{name}' expects text")


def _check_image(path: Path, schema: Any, column: str, name: str) -> bool:
    """Whether the image files are a field of a structure."""
    import pyarrow as pa

    kind = schema.field(column).type
    inside = pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0
    content = kind.field("bytes").type if inside else kind
    if not (pa.types.is_binary(content) or pa.types.is_large_binary(content)):
        raise DataError(f"{path.name}: column {column} holds {kind}, '{name}' expects image files")
    return bool(inside)


def _check_label(path: Path, schema: Any, needed: list[str], name: str) -> None:
    import pyarrow as pa

    absent = [column for column in needed if column not in schema.names]
    if absent:
        raise DataError(
            f"{path.name} has the columns {', '.join(schema.names)}; the card of '{name}' expects "
            f"{', '.join(needed)}: {', '.join(absent)} is missing"
        )
    label = needed[0]
    if not pa.types.is_integer(schema.field(label).type):
        raise DataError(
            f"{path.name}: column {label} holds {schema.field(label).type}, '{name}' expects whole "
            "numbers"
        )


def _check_names(path: Path, schema: Any, label: str, classes: Sequence[str], name: str) -> None:
    """The hub writes its label names into the schema: another number or order of them is an error."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])
        names = described["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError):
        return
    if len(names) != len(classes) or (names != list(classes) and sorted(names) == sorted(classes)):
        raise DataError(
            f"{path.name}: column {label} has the classes {', '.join(names)}; the card of '{name}' "
            f"has {', '.join(classes)}"
        )


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError) as error:
        raise DataError(
            f"{path} is no whole Parquet file: damaged, or cut short ({str(error).splitlines()[0]})"
        ) from error
