"""Where things lie: the checkout's cards, suites, claims and references; working state; the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from benchmarks.errors import UsageError

Resource = Literal["suites", "claims", "datasets", "weights", "reference"]

_PACKAGE = Path(__file__).resolve().parent
CHECKOUT = _PACKAGE.parent

_IN_CHECKOUT: dict[Resource, Path] = {
    "suites": Path("benchmarks/suites"),
    "claims": Path("benchmarks/claims"),
    "datasets": Path("datasets"),
    "weights": Path("weights"),
    "reference": Path("reports/reference"),
}


def is_checkout() -> bool:
    """Whether this package lies in a clone of the repository (and not in an installed wheel)."""
    return (CHECKOUT / "pyproject.toml").is_file() and (CHECKOUT / "datasets").is_dir()


def resource_dir(kind: Resource) -> Path:
    """The folder of a committed resource: in the checkout, or in a wheel's `_data`.

    Args:
        kind: "suites", "claims", "datasets" and "weights" (cards) or "reference" (accepted reports).
    """
    if is_checkout():
        return CHECKOUT / _IN_CHECKOUT[kind]
    return _PACKAGE / "_data" / kind


def runs_dir() -> Path:
    """Working state (weights, records, generated reports): `$FRUGALBENCH_RUNS`, else `runs/`."""
    chosen = _chosen("FRUGALBENCH_RUNS")
    return chosen or (CHECKOUT if is_checkout() else Path.cwd()) / "runs"


def cache_dir() -> Path:
    """Fetched data packages, shared by all clones: `$FRUGALBENCH_CACHE`, else the user's cache."""
    chosen = _chosen("FRUGALBENCH_CACHE")
    if chosen is not None:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "frugalbench"


def _chosen(variable: str) -> Path | None:
    """The folder that an environment variable names; it need not exist.

    Raises:
        UsageError: it names a file, or the home of nobody.
    """
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{variable} = {text}: there is no such home folder") from error
    if path.exists() and not path.is_dir():
        raise UsageError(f"{variable} = {text}: is a file, and must be a folder (or not exist yet)")
    return path


def require_one_place() -> None:
    """Raises UsageError unless `models` and `benchmarks` come from one place."""
    import importlib.util

    spec = importlib.util.find_spec("models")
    found = Path(spec.origin).resolve().parent.parent if spec and spec.origin else None
    if found != CHECKOUT:
        raise UsageError(
            f"'models' comes from {found or 'nowhere'}, but 'benchmarks' from {CHECKOUT}: "
            "another package called 'models' is in the way. Run from the checkout or use its "
            "own virtual environment."
        )
