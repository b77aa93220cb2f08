"""One canonical text for declared values, and short stable hashes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(value: Any) -> str:
    """Sorted, compact JSON; the text that every identity here is hashed from.

    Floats that are whole numbers are written as integers (1.0 and 1 are one value), tuples as
    lists. NaN and infinity are refused.
    """
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def digest(value: Any, *, length: int = 64) -> str:
    """Hex SHA-256 of `canonical_json(value)`, cut to `length` characters."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"no canonical form for {type(value).__name__}: {value!r}")
