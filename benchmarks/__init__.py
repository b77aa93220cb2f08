"""A reproducible benchmark suite for Transformers that spend less on attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.results import load_results as load_results

__version__ = "0.1.0"
__all__ = ["__version__", "load_results"]


def __getattr__(name: str) -> Any:
    """Loads `load_results` (and pandas with it) on first use."""
    if name == "load_results":
        from benchmarks.results import load_results

        return load_results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
