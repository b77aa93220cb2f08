"""Bring data ahead of a run.

Packages are downloaded with pip, without dependencies, checked against the card's SHA-256, and kept
in a data folder of their own (FRUGALBENCH_CACHE, else the user's cache folder). Sets on the hub come
by `huggingface_hub`, and so do weights on it; the first download of one locks its revision and
checksums. What a local mirror holds is only checked.
"""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.cli.options import DataOption, use_data


def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets, weights or suites; none: every packaged data set."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Bring data ahead of a run."""
    from benchmarks.catalog import WEIGHTS
    from benchmarks.data.card import find_card
    from benchmarks.data.fetch import fetch as fetch_card
    from benchmarks.data.fetch import is_available
    from benchmarks.data.locks import lock_place
    from benchmarks.data.sources import HubSource

    use_data(data)
    for name in _wanted(names or []):
        if name in WEIGHTS:
            _fetch_weights(name)
            continue
        card = find_card(name)
        if card.is_generated:
            continue
        if not is_available(card):
            size = f", {card.download_mb:.1f} MB" if card.download_mb else ""
            typer.echo(f"{name}: fetching {card.source_text}{size} …")
        fetch_card(card)  # looks at the hash of what is here, and replaces it if altered
        now = find_card(name)
        if isinstance(card.source, HubSource):
            typer.echo(f"{name}: locked at {now.source_text}; its lock: {lock_place(now)}")
        also = f", runs as {now.run_name}" if now.run_name != name else ""
        typer.echo(f"{name}: here and intact{also}")


def _fetch_weights(name: str) -> None:
    from benchmarks.data.weights import find_weights
    from benchmarks.data.weights_files import fetch_weights, weights_available
    from benchmarks.data.weights_hub import lock_place

    card = find_weights(name)
    if not weights_available(card):
        typer.echo(f"{name}: fetching {card.source_text} …")
    fetch_weights(card)
    if card.is_unverified:
        now = find_weights(name)
        typer.echo(f"{name}: locked at {now.source_text}; its lock: {lock_place(now)}")
    typer.echo(f"{name}: here and intact")


def _wanted(names: list[str]) -> list[str]:
    """Names of data sets and weights, with every suite's name replaced by those that it uses."""
    from benchmarks.catalog import DATASETS, WEIGHTS
    from benchmarks.data.sources import PackageSource
    from benchmarks.errors import UsageError, suggest
    from benchmarks.paths import resource_dir
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite

    known = list(DATASETS.names())
    if not names:
        return [n for n in known if isinstance(DATASETS.get(n).source, PackageSource)]
    suites = [path.stem for path in resource_dir("suites").glob("*.toml")]
    found: list[str] = []
    for name in names:
        if name in known or name in WEIGHTS:
            found.append(name)
        elif name in suites or name.endswith(".toml"):
            points = [p.point for p in expand(load_suite(name)).points]
            found += [point.dataset for point in points]
            found += [point.pretrained for point in points if point.pretrained is not None]
        else:
            known += [*WEIGHTS.names(), *suites]
            raise UsageError(suggest(name, known, kind="data set or suite"))
    return list(dict.fromkeys(found))
