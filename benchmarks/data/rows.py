"""The rows of any data set, whatever they hold."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.card import Card
from benchmarks.data.image_rows import ImageRows, read_image_rows
from benchmarks.data.readers import Rows, read_rows


def read_any_rows(card: Card, path: Path) -> Rows | ImageRows:
    """`read_rows` or `read_image_rows`, by the card's task."""
    return read_image_rows(card, path) if card.is_image else read_rows(card, path)
