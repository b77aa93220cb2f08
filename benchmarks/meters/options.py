"""A meter's options: its defaults, overridden by what the suite says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.errors import UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping


def with_defaults(
    meter: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """All options of a meter.

    Raises:
        UsageError: an option that the meter does not have.
    """
    for name in options:
        if name not in defaults:
            raise UsageError(f"meter '{meter}': {suggest(name, defaults, kind='option')}")
    return {**defaults, **options}
