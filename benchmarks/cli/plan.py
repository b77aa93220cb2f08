"""Say what a suite would do, and run nothing: points, what is done, what remains, how long."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer


def plan(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or path of a suite file.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only points with this label, data set, model, sweep or point id."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Trainings side by side; default: one per core.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a suite would do, and run nothing."""
    from benchmarks.catalog import DATASETS
    from benchmarks.data.fetch import is_available
    from benchmarks.paths import runs_dir
    from benchmarks.planning.plan import make_plan
    from benchmarks.planning.suite import load_suite
    from benchmarks.running.environment import usable_cores
    from benchmarks.running.store import RecordStore

    made = make_plan(load_suite(suite), RecordStore(runs_dir() / "records"), only=only or ())
    done = Counter(m.point.point_id for m in made.done)
    wanted = Counter(m.point.point_id for m in made.wanted)
    workers = jobs or usable_cores()
    seconds = made.seconds(workers)
    datasets = sorted({p.point.dataset for p in made.expansion.points})
    missing = [name for name in datasets if not is_available(DATASETS.get(name))]
    rows: list[dict[str, Any]] = [
        {
            "point_id": p.point.point_id,
            "stage": p.stage,
            "sweep": p.sweep,
            "label": p.point.label,
            "dataset": p.point.dataset,
            "seed": p.point.seed,
            "axes": dict(p.axes),
            "records_done": done[p.point.point_id],
            "records": wanted[p.point.point_id],
        }
        for p in made.expansion.points
        if wanted[p.point.point_id]
    ]
    if as_json:
        document = {
            "suite": made.expansion.suite.name,
            "points": rows,
            "skipped": [{"what": s.what, "reason": s.reason} for s in made.expansion.skipped],
            "records_done": len(made.done),
            "records": len(made.wanted),
            "tasks": len(made.point_tasks) + len(made.sample_tasks),
            "estimated_seconds": round(seconds, 1),
            "data_to_fetch": missing,
        }
        typer.echo(json.dumps(document, indent=1))
        return
    for row in rows:
        axes = "  ".join(f"{k}={v}" for k, v in row["axes"].items())
        typer.echo(
            f"{row['point_id']}  stage {row['stage']}  {row['sweep']:<14} {row['dataset']:<16} "
            f"{row['label']:<16} seed {row['seed']}  {row['records_done']}/{row['records']}  {axes}"
        )
    for skipped in made.expansion.skipped:
        typer.echo(f"skipped  {skipped.what}: {skipped.reason}")
    typer.echo(
        f"{len(rows)} points, {len(made.done)} of {len(made.wanted)} records done; "
        f"{len(made.point_tasks)} points and {len(made.sample_tasks)} timed processes remain, "
        f"roughly {seconds / 60:.1f} min with {workers} side by side"
    )
    if missing:
        size = sum(DATASETS.get(name).download_mb for name in missing)
        typer.echo(
            f"to fetch first: {', '.join(missing)} ({size:.0f} MB): "
            f"`frugalbench fetch {' '.join(missing)}`"
        )
