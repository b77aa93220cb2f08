"""Evaluate a suite's claims and compare its records with the accepted reference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.checking.check import CheckResult
    from benchmarks.checking.claim_files import Claim
    from benchmarks.checking.verdicts import Verdict

_COLOURS = {"holds": "green", "refuted": "magenta", "undecided": "yellow", "unmeasured": "red"}


def check(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or path of a suite file.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 when a claim is undecided.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a suite's records against its claims and the accepted reference; measures nothing.

    Exit codes: 0 nothing is worse than the reference, whatever the verdicts; 1 a regression or a
    failed point; 2 wrong usage or an invalid file; 3 (only with --strict) a claim is undecided; 4
    no claim could be measured.
    """
    from benchmarks.checking.check import as_document, check_suite

    result = check_suite(suite)
    code = result.exit_code(strict=strict)
    if as_json:
        typer.echo(json.dumps(as_document(result, strict=strict), indent=1))
    else:
        from rich.console import Console

        _print(result, Console(highlight=False), code)
    if code:
        raise typer.Exit(code)


def _print(result: CheckResult, console: Console, code: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    state = f"{result.suite}: {result.n_records} records"
    if result.n_missing:
        state += f", {result.n_missing} not measured yet"
    if result.n_stale:
        state += f", {result.n_stale} left out because code, data or libraries changed since"
    console.print(state, soft_wrap=True)
    for item in result.claims:
        claim = item.claim
        console.print(
            f"\n[bold]{escape(claim.title)}[/]: [{_COLOURS[item.outcome]}]{item.outcome}[/] "
            f"({claim.id}; {claim.quantity} {claim.threshold.text}, against {claim.baseline})",
            soft_wrap=True,
        )
        table = Table("data set", "candidate", "verdict", "estimate", "interval", "n")
        for verdict in item.verdicts:
            setting = "".join(f", {name} = {value}" for name, value in verdict.setting.items())
            table.add_row(
                verdict.dataset,
                escape(verdict.candidate + setting),
                f"[{_COLOURS[verdict.outcome]}]{verdict.outcome}[/]",
                *_numbers(claim, verdict),
            )
        console.print(table)
        for verdict in item.verdicts:
            # an interval explains its verdict by itself
            reason = () if verdict.interval else (verdict.reason,)
            for remark in (*reason, *verdict.caveats):
                console.print(
                    f"  {verdict.dataset}, {verdict.candidate}: {remark}",
                    markup=False,
                    soft_wrap=True,
                )
    if not result.claims:
        console.print("no claim names this suite")
    _print_changes(result, console)
    summary = _SUMMARY[code] if code or result.has_reference else "nothing failed"
    console.print(f"\n{summary}", soft_wrap=True)


_SUMMARY = {
    0: "nothing is worse than the reference",
    1: "[red]regression or failed point[/] (exit code 1)",
    3: "a claim is undecided (exit code 3, because of --strict)",
    4: "nothing could be checked (exit code 4): run the suite first",
}


def _print_changes(result: CheckResult, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not result.has_reference:
        console.print(
            f"\nno reference yet: nothing to compare with. `frugalbench accept {result.suite} "
            '--reason "..."` makes these records the reference.',
            soft_wrap=True,
        )
    if not result.changes:
        if result.has_reference:
            console.print("\nno difference from the reference")
        return
    table = Table("change", "what", "reference", "now", title="against the reference")
    for change in result.changes:
        kind = f"[red]{change.kind}, regression[/]" if change.red else change.kind
        table.add_row(kind, escape(change.what), escape(change.reference), escape(change.current))
    console.print()
    console.print(table)


def _numbers(claim: Claim, verdict: Verdict) -> tuple[str, str, str]:
    """Estimate, interval and n: accuracy in points, ratios as they are."""
    if verdict.estimate is None:
        return "", "", ""
    scale, form = (100, "{:+.2f}") if claim.quantity == "accuracy_difference" else (1, "{:.3f}")
    interval = "single"
    if verdict.interval is not None:
        low, high = verdict.interval.low, verdict.interval.high
        interval = f"{form.format(scale * low)} to {form.format(scale * high)}"
    unit = " points" if scale == 100 else ""
    return form.format(scale * verdict.estimate) + unit, interval, str(verdict.n)
