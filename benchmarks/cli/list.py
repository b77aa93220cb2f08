"""List what there is, one line each, and what is available here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from benchmarks.cli.options import DataOption, use_data
from benchmarks.errors import FrugalbenchError, UsageError, suggest

Row = dict[str, Any]


def list_(
    what: Annotated[
        str, typer.Argument(help="suites, models, datasets, weights, meters or claims.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data: DataOption = None,
) -> None:
    """Prints the chosen tables.

    Raises:
        UsageError: no table of that name.
    """
    use_data(data)
    if what and what not in TABLES:
        raise UsageError(suggest(what, TABLES, kind="list"))
    chosen = {what: TABLES[what]()} if what else {name: rows() for name, rows in TABLES.items()}
    if as_json:
        typer.echo(json.dumps(chosen[what] if what else chosen, indent=1))
        return
    from benchmarks.cli.table import print_table

    for index, (name, rows) in enumerate(chosen.items()):
        if index:
            typer.echo()
        columns = list(rows[0]) if rows else ["name"]
        cells = [[str(row[column]) for column in columns] for row in rows]
        print_table(columns, cells, title="" if what else name.upper(), whole=["name"])


def _suites() -> list[Row]:
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite, suite_names

    def row(name: str) -> Row:
        suite = load_suite(name)
        return {"name": name, "points": len(expand(suite).points), "title": suite.title}

    return _rows(suite_names(), row, {"points": "", "title": ""})


def _models() -> list[Row]:
    from benchmarks.catalog import MODELS

    def row(name: str) -> Row:
        config = MODELS.get(name)
        source = {"none": "", "macs": "MACs"}.get(config.source, config.source)
        needs = " and ".join(filter(None, [source, "a base" if config.base != "none" else ""]))
        return {"name": name, "role": config.role, "needs": needs, "summary": config.summary}

    return _rows(MODELS.names(), row, {"role": "", "needs": "", "summary": ""})


def _datasets() -> list[Row]:
    from benchmarks.catalog import DATASETS

    def row(name: str) -> Row:
        from benchmarks.data.card import find_card
        from benchmarks.data.fetch import state

        card = find_card(name)
        rows = [card.n_rows(split) for split in ("train", "validation", "test")]
        shown = " / ".join(f"{n:,}" for n in rows) if any(rows) else "not known yet"
        mirror = f"runs as {card.run_name}" if card.run_name != name else ""
        return {
            "name": name,
            "state": state(card),
            "rows": shown,
            "title": card.title,
            "role": "; ".join(filter(None, [card.role, mirror])),
        }

    empty = {"state": "", "rows": "", "title": "", "role": ""}
    return _rows(DATASETS.names(), row, empty)


def _weights() -> list[Row]:
    from benchmarks.catalog import WEIGHTS

    def row(name: str) -> Row:
        from benchmarks.data.weights import find_weights
        from benchmarks.data.weights_files import weights_state

        card = find_weights(name)
        fetch = f"run `frugalbench fetch {name}`"
        told = {"available": "here", "needs download": fetch, "unverified": f"unverified; {fetch}"}
        return {"name": name, "available": told[weights_state(card)], "title": card.title}

    return _rows(WEIGHTS.names(), row, {"available": "", "title": ""})


def _meters() -> list[Row]:
    from benchmarks.catalog import METERS

    def row(name: str) -> Row:
        spec = METERS.get(name)
        return {"name": name, "kind": spec.kind, "summary": spec.summary}

    return _rows(METERS.names(), row, {"kind": "", "summary": ""})


def _claims() -> list[Row]:
    from benchmarks.paths import resource_dir
    from benchmarks.toml_files import read_toml

    folder = resource_dir("claims")

    def row(name: str) -> Row:
        claim = read_toml(folder / f"{name}.toml")
        return {"name": name, "suite": claim.get("suite", ""), "title": claim.get("title", "")}

    names = sorted(path.stem for path in folder.glob("*.toml"))
    return _rows(names, row, {"suite": "", "title": ""})


TABLES: dict[str, Callable[[], list[Row]]] = {
    "suites": _suites,
    "models": _models,
    "datasets": _datasets,
    "weights": _weights,
    "meters": _meters,
    "claims": _claims,
}


def _rows(names: Sequence[str], row: Callable[[str], Row], empty: Row) -> list[Row]:
    """One row for each name; what cannot be read says so in its last column and hides nothing."""
    rows: list[Row] = []
    for name in names:
        try:
            rows.append(row(name))
        except FrugalbenchError as error:
            rows.append({"name": name, **empty, list(empty)[-1]: f"invalid: {error}"})
    return rows
