"""What a record says of the inputs that a number was measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.data.load import EncodedSplit
from benchmarks.data.sources import GeneratedSource
from benchmarks.records import DataUsed

if TYPE_CHECKING:
    from benchmarks.data.load import AnyData


def data_used(data: AnyData) -> DataUsed:
    """Identity of the test split, with what was cut off or empty in the note."""
    split = data.test()
    notes = [data.note] if data.note else []
    if isinstance(split, EncodedSplit) and split.n_truncated:
        notes.append(f"{split.n_truncated} of {len(split)} inputs cut to {data.max_length} tokens")
    if isinstance(split, EncodedSplit) and split.n_empty:
        notes.append(f"{split.n_empty} of {len(split)} inputs are empty texts")
    return DataUsed(
        name=data.card.run_name,
        split="generated" if isinstance(data.card.source, GeneratedSource) else "test",
        n=len(split),
        hash=data.hash,
        partial=data.partial,
        note="; ".join(notes),
    )


def validation_used(data: AnyData, n: int) -> DataUsed:
    """Identity of `n` inputs of the validation split, where choices between layers are made."""
    whole = len(data.validation)
    notes = [data.note] if data.note else []
    if n < whole:
        notes.append(f"{n} of {whole} validation inputs, a fixed sample")
    return DataUsed(
        name=data.card.run_name,
        split="validation",
        n=n,
        hash=data.hash,
        partial=data.partial,
        note="; ".join(notes),
    )
