"""Show one point: what it is, its records, its environment, and the command that repeats it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from benchmarks.records import Record, Value


SHOWN = 5


def show(
    point: Annotated[str, typer.Argument(help="A point id, or the first letters of one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one point with all its records."""
    from benchmarks.errors import UsageError
    from benchmarks.paths import runs_dir
    from benchmarks.running.store import RecordStore

    root = runs_dir() / "records"
    ids = sorted(path.parent.name for path in root.glob("*/*.json")) if point else []
    ids = [name for name in dict.fromkeys(ids) if name.startswith(point)]
    if not ids:
        raise UsageError(
            f"no point with a record under {root} begins with '{point}'; `frugalbench plan SUITE` "
            "lists the ids and what is done"
        )
    if len(ids) > 1:
        more = f", and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        raise UsageError(
            f"{len(ids)} points begin with '{point}': {', '.join(ids[:SHOWN])}{more}; give more letters"
        )
    records = RecordStore(root).all_of(ids[0])
    if not records:
        raise UsageError(f"every record of {ids[0]} is damaged; run its suite again")
    if as_json:
        typer.echo(json.dumps([r.model_dump(mode="json") for r in records], indent=1))
        return
    first = records[0]
    typer.echo(f"{first.point_id}  {first.label} on {first.point['dataset']}, seed {first.seed}")
    for name, value in _flat(first.point):
        typer.echo(f"  {name} = {value}")
    for record in records:
        _print_record(record)
    typer.echo(f"repeat: frugalbench run SUITE --only {first.point_id}")


def _print_record(record: Record) -> None:
    against = f" against {record.baseline_label}" if record.baseline_label else ""
    typer.echo(
        f"\n{record.meter}{against}: {record.status}, {record.created}, key "
        f"{record.key.cache_key[:12]}"
    )
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
