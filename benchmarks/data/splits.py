"""Which row belongs to which split: the rule, the committed row ids, and nested subsets.

The rule, in this order:

(An image set follows the same rule; for "text" read "image".)

0. If the card says `unique`: of the training part's rows with one text only the first is kept.
1. An official split is the part of that name, and is kept whole.
2. A test split given as a share is the last share of each label's rows in the training part.
3. From what remains for training, a row is dropped if its text occurs in the test split. Two texts
   are the same if they are equal once lower-cased and with white space collapsed; a pair is also
   the same as its swapped self. Two images are the same if their pixels are, in their own size.
4. A validation split given as a share is the last share of each label's remaining rows.
5. From what remains, a row is dropped if its text occurs in the validation split.

A share of n rows is floor(share * n + 0.5), but never all n: a label with a single row keeps it for
training. What a rule gives is committed as row ids, and the loader uses these; a test computes them
again. The row ids of a hub set are locked with its first download; those of a local mirror, whose
files are known by their checksums, are computed whenever they are read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from benchmarks.data.card import Card
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.running.files import write_atomically

_STORED = ("train", "validation", "test", "dropped")
SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


class AnyRows(Protocol):
    """Rows as far as a rule looks at them."""

    @property
    def labels(self) -> Sequence[int]:
        """Index into the card's classes, of each row."""

    @property
    def parts(self) -> Mapping[str, range]:
        """For each part, its row ids."""

    def same(self, row: int) -> Hashable:
        """What is equal for rows with the same content."""


@dataclass(frozen=True)
class Splits:
    """Ascending row ids of each split, and those dropped from training as duplicates."""

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]
    dropped: tuple[int, ...]


def compute_splits(card: Card, rows: AnyRows) -> Splits:
    """Applies the card's rule (see the module's text)."""
    rule = card.splits
    if rule is None:
        raise DataError(f"data set '{card.name}' has no split rule")
    pool = list(rows.parts[rule.train])
    dropped: list[int] = []
    if rule.unique:
        pool, dropped = _first_of_each(pool, rows)
    if isinstance(rule.test, str):
        test = list(rows.parts[rule.test])
    else:
        pool, test = _cut(pool, rows.labels, rule.test)
    pool, in_test = _without(pool, test, rows)
    if isinstance(rule.validation, str):
        validation = list(rows.parts[rule.validation])
    else:
        pool, validation = _cut(pool, rows.labels, rule.validation)
    pool, in_validation = _without(pool, validation, rows)
    dropped = sorted(dropped + in_test + in_validation)
    return Splits(tuple(pool), tuple(validation), tuple(test), tuple(dropped))


def splits_of(card: Card, rows: AnyRows) -> Splits:
    """The row ids that a loader uses: the committed or locked ones, or a mirror's computed ones.

    Raises:
        InvalidFileError: the file of row ids is missing or damaged.
        DataError: a mirror's counts are not what its manifest says.
    """
    if not card.computes_splits:
        return read_splits(card)
    splits = compute_splits(card, rows)
    found = {name: len(row_ids) for name, row_ids in vars(splits).items()}
    said = card.counts.model_dump() if card.counts else {}
    if found != said:
        raise DataError(
            f"data set '{card.run_name}': its splits have {found} rows, the manifest's counts are "
            f"{said}"
        )
    return splits


def rows_of_splits(card: Card, rows: AnyRows, train_fraction: float) -> dict[SplitName, list[int]]:
    """The row ids of each split that a loader keeps: of the training split a nested subset.

    Raises:
        InvalidFileError: see `splits_of`.
        DataError: likewise; a row id that no row has, or a class without a training row.
    """
    splits = splits_of(card, rows)
    last = max(max(getattr(splits, name), default=-1) for name in SPLITS)
    if last >= len(rows.labels):
        raise DataError(
            f"data set '{card.name}': its split file names row {last}, but there are only "
            f"{len(rows.labels)} rows"
        )
    labels = [rows.labels[row] for row in splits.train]
    present = set(labels)
    absent = [name for label, name in enumerate(card.classes) if label not in present]
    if absent:
        raise DataError(
            f"data set '{card.name}': no training row is of class {', '.join(map(repr, absent))}, "
            "so nothing can learn it"
        )
    return {
        "train": nested_subset(splits.train, labels, train_fraction, card.name),
        "validation": list(splits.validation),
        "test": list(splits.test),
    }


def nested_subset(
    row_ids: Sequence[int], labels: Sequence[int], fraction: float, salt: str
) -> list[int]:
    """A stratified subset; a smaller fraction's rows are among a larger one's.

    Each label's rows are put in an order fixed by hashing `salt` and the row id, and the first
    floor(fraction * n + 0.5), at least one, are taken. No seed has a part in it.

    Args:
        row_ids: the rows to choose from.
        labels: label of each of them.
        fraction: share in (0, 1].
        salt: the card's name, so that each data set has an order of its own.

    Raises:
        DataError: the fraction is not in (0, 1].
    """
    if not 0 < fraction <= 1:
        raise DataError(f"train_fraction must lie in (0, 1], not {fraction}")
    by_label: dict[int, list[int]] = defaultdict(list)
    for row, label in zip(row_ids, labels, strict=True):
        by_label[label].append(row)
    chosen: list[int] = []
    for members in by_label.values():
        order = sorted(members, key=lambda row: hashlib.sha256(f"{salt}:{row}".encode()).digest())
        chosen += order[: max(1, _share(fraction, len(members)))]
    return sorted(chosen)


def read_splits(card: Card) -> Splits:
    """The committed row ids.

    Raises:
        InvalidFileError: the file is missing, damaged, or not what the card counts.
    """
    path = card.splits_file
    shown = f"{path.parent.name}/{path.name}"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        splits = Splits(**{name: tuple(from_ranges(stored[name])) for name in _STORED})
    except FileNotFoundError as error:
        raise InvalidFileError(
            f"{shown}: the committed row ids of '{card.name}' are missing; `python -m "
            f"benchmarks.data.commit_splits {card.name}` writes them"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidFileError(f"{shown}: not a file of row ids: {error!r}") from error
    if card.counts is not None:
        for name, count in card.counts.model_dump().items():
            if len(getattr(splits, name)) != count:
                raise InvalidFileError(
                    f"{shown}: {name} has {len(getattr(splits, name))} row ids, the card's "
                    f"counts.{name} says {count}"
                )
    every = [row for name in _STORED for row in getattr(splits, name)]
    if len(set(every)) != len(every):
        raise InvalidFileError(f"{shown}: a row is in two splits")
    return splits


def write_splits(splits: Splits, path: Path) -> None:
    """Writes row ids as ranges, the form that `read_splits` reads."""
    stored = {name: to_ranges(getattr(splits, name)) for name in _STORED}
    write_atomically(path, (json.dumps(stored, indent=1) + "\n").encode())


def to_ranges(row_ids: Iterable[int]) -> str:
    """Ascending ids as text: [0, 1, 2, 5] is "0-2 5"."""
    runs: list[list[int]] = []
    for row in row_ids:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def from_ranges(text: str) -> list[int]:
    """The inverse of `to_ranges`.

    Raises:
        ValueError: not ranges, or not strictly ascending.
    """
    row_ids: list[int] = []
    for run in text.split():
        first, _, last = run.partition("-")
        start, stop = int(first), int(last or first) + 1
        if stop <= start or (row_ids and start <= row_ids[-1]):
            raise ValueError(f"'{run}' is out of order")
        row_ids.extend(range(start, stop))
    return row_ids


def _share(share: float, n: int) -> int:
    return math.floor(share * n + 0.5)


def _cut(row_ids: list[int], labels: Sequence[int], share: float) -> tuple[list[int], list[int]]:
    """(rest, the last share of each label's rows), both ascending."""
    by_label: dict[int, list[int]] = defaultdict(list)
    for row in row_ids:
        by_label[labels[row]].append(row)
    cut: set[int] = set()
    for members in by_label.values():
        n = min(_share(share, len(members)), len(members) - 1)
        cut.update(members[len(members) - n :])
    return [row for row in row_ids if row not in cut], sorted(cut)


def _first_of_each(row_ids: list[int], rows: AnyRows) -> tuple[list[int], list[int]]:
    """(kept, dropped): of the rows with one text the first is kept."""
    first: dict[Hashable, int] = {}
    for row in row_ids:
        first.setdefault(rows.same(row), row)
    kept = set(first.values())
    return sorted(kept), [row for row in row_ids if row not in kept]


def _without(
    row_ids: list[int], others: Iterable[int], rows: AnyRows
) -> tuple[list[int], list[int]]:
    """(kept, dropped): rows are dropped whose text is that of one of `others`."""
    taken = {rows.same(row) for row in others}
    dropped = [row for row in row_ids if rows.same(row) in taken]
    gone = set(dropped)
    return [row for row in row_ids if row not in gone], dropped
