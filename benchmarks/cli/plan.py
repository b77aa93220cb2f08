"""Say what a suite would do, and run nothing: points, what is done, what remains, how long."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer

from benchmarks.cli.options import (
    DataOption,
    JobsOption,
    OnlyOption,
    SkipMissingOption,
    SuiteArgument,
    absent_data,
    skipping,
    use_data,
)


def plan(
    suite: SuiteArgument,
    only: OnlyOption = None,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data: DataOption = None,
    skip_missing: SkipMissingOption = False,
) -> None:
    """Say what a suite would do, and run nothing."""
    from benchmarks.data.card import find_card
    from benchmarks.data.weights import find_weights
    from benchmarks.data.weights_files import weights_available
    from benchmarks.paths import runs_dir
    from benchmarks.planning.plan import make_plan
    from benchmarks.planning.suite import load_suite
    from benchmarks.running.environment import usable_cores
    from benchmarks.running.store import RecordStore

    use_data(data)
    loaded = load_suite(suite)
    missing = absent_data(loaded)
    absent = missing if skip_missing else []
    store = RecordStore(runs_dir() / "records")
    made = make_plan(loaded, store, only=only or (), without=absent)
    done = Counter(m.point.point_id for m in made.done)
    wanted = Counter(m.point.point_id for m in made.wanted)
    workers = jobs or usable_cores()
    seconds = made.seconds(workers)
    datasets = sorted({p.point.dataset for p in made.expansion.points} - set(absent))
    cards = {name: find_card(name) for name in datasets}
    missing = [name for name in missing if name in cards]
    starts = sorted({p.point.pretrained or "" for p in made.expansion.points} - {""})
    to_fetch = [name for name in starts if not weights_available(find_weights(name))]
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
            "data_left_out": absent,
            "weights_to_fetch": to_fetch,
        }
        typer.echo(json.dumps(document, indent=1))
        return
    width = {
        n: max((len(row[n]) for row in rows), default=0) for n in ("sweep", "dataset", "label")
    }
    for row in rows:
        axes = "  ".join(f"{k}={v}" for k, v in row["axes"].items())
        names = "  ".join(f"{row[n]:<{width[n]}}" for n in width)
        typer.echo(
            f"{row['point_id']}  stage {row['stage']}  {names}  seed {row['seed']}  "
            f"{row['records_done']}/{row['records']}  {axes}"
        )
    uncounted = [name for name in missing if cards[name].counts is None]
    for line in skipping(absent):
        typer.echo(line)
    for skipped in made.expansion.skipped:
        typer.echo(f"skipped  {skipped.what}: {skipped.reason}")
    typer.echo(
        f"{len(rows)} points, {len(made.done)} of {len(made.wanted)} records done; "
        f"{len(made.point_tasks)} points and {len(made.sample_tasks)} timed processes remain, "
        f"{'at least' if uncounted else 'roughly'} {seconds / 60:.1f} min with {workers} side by side"
    )
    if missing:
        size = sum(cards[name].download_mb for name in missing)
        unknown = [name for name in missing if not cards[name].download_mb]
        sizes = [f"{size:.0f} MB"] * bool(size) + [f"{name}: size unknown" for name in unknown]
        typer.echo(
            f"to fetch first: {', '.join(missing)} ({', '.join(sizes)}): "
            f"`frugalbench fetch {' '.join(missing)}`"
        )
    if to_fetch:
        size = sum(find_weights(name).download_mb for name in to_fetch)
        typer.echo(
            f"weights to fetch first: {', '.join(to_fetch)} ({size:.0f} MB): "
            f"`frugalbench fetch {' '.join(to_fetch)}`"
        )
    if uncounted:
        typer.echo(f"not in the estimate, since their rows are not known: {', '.join(uncounted)}")
    for name in datasets:
        if cards[name].run_name != name:
            typer.echo(f"{name} runs as {cards[name].run_name}")
