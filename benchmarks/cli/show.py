"""Show one point: what it is, its records, its environment, and the command that repeats it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.records import Record, Value
    from benchmarks.running.store import RecordStore


SHOWN = 5


def show(
    point: Annotated[str, typer.Argument(help="A point id, or the first letters of one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one point with all its records."""
    from benchmarks.errors import UsageError

    stores = _stores()
    places = {store.root: store.point_ids() for store in stores} if point else {}
    ids = sorted({name for found in places.values() for name in found if name.startswith(point)})
    if not ids:
        raise UsageError(
            f"no point with a record under {stores[0].root}, or in the accepted references, begins "
            f"with '{point}'; `frugalbench plan SUITE` lists the ids and what is done"
        )
    if len(ids) > 1:
        more = f", and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        raise UsageError(
            f"{len(ids)} points begin with '{point}': {', '.join(ids[:SHOWN])}{more}; give more letters"
        )
    found: list[tuple[RecordStore, Record]] = []
    records: list[Record] = []
    for store in stores:
        for record in store.all_of(ids[0]) if ids[0] in places[store.root] else ():
            if record not in records:  # what was accepted is here and in the reference
                found.append((store, record))
                records.append(record)
    if not records:
        raise UsageError(f"every record of {ids[0]} is damaged; run its suite again")
    if as_json:
        typer.echo(json.dumps([r.model_dump(mode="json") for r in records], indent=1))
        return
    first = records[0]
    typer.echo(f"{first.point_id}  {first.label} on {first.point['dataset']}, seed {first.seed}")
    for name, value in _flat(first.point):
        typer.echo(f"  {name} = {value}")
    for store, record in found:
        _print_record(record, store)
    typer.echo(f"repeat: frugalbench run {_suite_of(first.point_id)} --only {first.point_id}")


def _stores() -> list[RecordStore]:
    """The working state, then every accepted reference."""
    from benchmarks.paths import resource_dir, runs_dir
    from benchmarks.results import reference_store
    from benchmarks.running.store import RecordStore

    accepted = sorted(path.parent.name for path in resource_dir("reference").glob("*/records"))
    return [RecordStore(runs_dir() / "records"), *map(reference_store, accepted)]


def _suite_of(point_id: str) -> str:
    """The first suite beside the harness that holds the point; SUITE where it is of another file."""
    from benchmarks.errors import FrugalbenchError
    from benchmarks.planning.expand import expand
    from benchmarks.planning.suite import load_suite, suite_names

    for name in suite_names():
        try:
            planned = expand(load_suite(name)).points
        except FrugalbenchError:
            continue  # a suite that is being written is no reason to show nothing
        if any(other.point.point_id == point_id for other in planned):
            return name
    return "SUITE"


def _shown(path: Path) -> str:
    """A record's path from the folder of working state, or from the checkout."""
    from benchmarks.paths import runs_dir
    from benchmarks.toml_files import shown

    return str(path.relative_to(runs_dir())) if path.is_relative_to(runs_dir()) else shown(path)


def _print_record(record: Record, store: RecordStore) -> None:
    against = f" against {record.baseline_label}" if record.baseline_label else ""
    typer.echo(
        f"\n{record.meter}{against}: {record.status}, {record.created}, key "
        f"{record.key.cache_key[:12]}"
    )
    typer.echo(f"  in {_shown(store.path_for(record))}")
    if record.data is not None:
        data = record.data
        note = f" ({data.note})" if data.note else ""
        typer.echo(f"  on {data.name}, {data.n} inputs of the {data.split} split{note}")
    if record.failure is not None:
        typer.echo(f"  {record.failure.type}: {record.failure.message}")
        typer.echo("  " + record.failure.traceback.replace("\n", "\n  ").rstrip())
    for value in record.values:
        typer.echo(f"  {_value_text(value)}")
    for name, content in record.info.items():
        typer.echo(f"  {name}: {content}")
    for warning in record.warnings:
        typer.echo(f"  warning: {warning}")
    env = record.environment
    versions = ", ".join(f"{name} {number}" for name, number in env.libraries.items())
    typer.echo(
        f"  on {env.cpu}, {env.cores} cores, {env.threads} thread(s), Python {env.python}, {versions}"
    )


def _value_text(value: Value) -> str:
    context = ", ".join(f"{k}={v}" for k, v in value.context.items())
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f" [{value.low:.6g}, {value.high:.6g}] ({value.method})"
    count = f" n={value.n}" if value.n is not None else ""
    name = f"{value.name} ({context})" if context else value.name
    return f"{name} = {value.value:.6g} {value.unit}{interval}{count}"


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((prefix + name, value))
    return rows
