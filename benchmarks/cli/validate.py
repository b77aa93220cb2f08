"""Check every card, suite, claim and model file, and say what is wrong with file and key path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import FrugalbenchError


def validate(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prints every problem; exit code 2 if there is one."""
    checked = 0
    problems: list[str] = []
    for check in _checks():
        checked += 1
        try:
            check()
        except FrugalbenchError as error:
            problems += str(error).splitlines()
    problems = list(dict.fromkeys(problems))
    if as_json:
        typer.echo(json.dumps({"checked": checked, "problems": problems}, indent=1))
    else:
        for problem in problems:
            typer.echo(problem)
        typer.echo(f"{checked} entries checked, problems: {len(problems) or 'none'}")
    if problems:
        raise typer.Exit(2)


def _checks() -> Iterator[Callable[[], object]]:
    from benchmarks.catalog import DATASETS, METERS, MODELS, WEIGHTS
    from benchmarks.checking.claim_files import load_claim
    from benchmarks.data.card import find_card
    from benchmarks.data.splits import read_splits
    from benchmarks.data.weights import find_weights, holders
    from benchmarks.paths import resource_dir
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite, suite_names

    def card(name: str) -> None:
        found = find_card(name)
        if found.counts is not None and not found.computes_splits:
            read_splits(found)

    def weights(name: str) -> None:
        holders(find_weights(name))

    def suite(name: str) -> None:
        expand(load_suite(name))

    def claim(path: Path) -> None:
        loaded = load_claim(path)
        loaded.check_suite_name()
        loaded.check_names(expand(load_suite(loaded.suite)))

    yield from (partial(MODELS.get, name) for name in MODELS.names())
    yield from (partial(card, name) for name in DATASETS.names())
    yield from (partial(weights, name) for name in WEIGHTS.names())
    yield from (partial(METERS.get, name) for name in METERS.names())
    yield from (partial(suite, name) for name in suite_names())
    yield from (partial(claim, path) for path in sorted(resource_dir("claims").glob("*.toml")))
