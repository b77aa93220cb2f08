"""Evaluate a suite's claims and compare its records with the accepted reference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.cli.options import DataOption, use_data

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from benchmarks.checking.check import CheckResult
    from benchmarks.checking.claim_files import Claim
    from benchmarks.checking.verdicts import ClaimResult, Verdict

WIDE = 10_000
"""Characters; no table is wider."""
_COLOURS = {"holds": "green", "refuted": "magenta", "undecided": "yellow", "unmeasured": "red"}


def check(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or path of a suite file.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 when a claim is undecided or unmeasured.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data: DataOption = None,
) -> None:
    """Check a suite's records against its claims and the accepted reference; measures nothing.

    Exit codes: 0 nothing is worse than the reference, whatever the verdicts; 1 a regression or a
    failed point; 2 wrong usage or an invalid file; 3 (only with --strict) a claim is undecided or
    unmeasured, on any data set or for any candidate; 4 no claim could be measured.
    """
    from benchmarks.checking.check import as_document, check_suite

    use_data(data)
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
    from benchmarks.reporting.sections.verdicts import ROLL_UP

    state = f"{result.suite}: {result.n_records} records"
    if result.n_missing:
        state += f", {result.n_missing} not measured yet"
    if result.n_stale:
        state += f", {result.n_stale} left out because code, data or libraries changed since"
    if result.n_damaged:
        state += f", {result.n_damaged} left out because they are damaged or edited"
    console.print(state, soft_wrap=True)
    for item in result.claims:
        _print_claim(item, console)
    if result.claims:
        console.print(f"\n{ROLL_UP}", soft_wrap=True)
    if not result.claims:
        console.print("no claim names this suite")
    _print_changes(result, console)
    summary = _SUMMARY[code] if code or result.has_reference else "nothing failed"
    console.print(f"\n{summary}", soft_wrap=True)


def _print_claim(item: ClaimResult, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    from benchmarks.data.card import find_card
    from benchmarks.reporting.sections.verdicts import noise, threshold_text

    claim = item.claim
    asked = claim.quantity.replace("_", " ")
    if claim.batch_size is not None:
        asked += f" at batch {claim.batch_size}"
    console.print(
        f"\n[bold]{escape(claim.title)}[/]: [{_COLOURS[item.outcome]}]{item.outcome}[/] "
        f"({claim.id}; {asked} {threshold_text(claim)}, against {claim.baseline})",
        soft_wrap=True,
    )
    table = Table("data set", "candidate", "verdict", "estimate", "interval", "n")
    names = {name: find_card(name).run_name for name in claim.datasets}
    for verdict in item.verdicts:
        setting = "".join(f", {name} = {value}" for name, value in verdict.setting.items())
        noisy = ", noisy" if noise(claim, verdict) else ""
        table.add_row(
            escape(names[verdict.dataset]),
            escape(verdict.candidate + setting),
            f"[{_COLOURS[verdict.outcome]}]{verdict.outcome}[/]{noisy}",
            *_numbers(claim, verdict),
        )
    _print_whole(table, console)
    for verdict in item.verdicts:
        # an interval explains its verdict by itself
        reason = () if verdict.interval else (verdict.reason,)
        for remark in (*reason, *verdict.caveats):
            console.print(
                f"  {names[verdict.dataset]}, {verdict.candidate}: {remark}",
                markup=False,
                soft_wrap=True,
            )


def _print_whole(table: Table, console: Console) -> None:
    """Prints a table with no cell cut or broken, however narrow the console."""
    narrow, console.width = console.width, WIDE
    console.width = max(narrow, console.measure(table).maximum)
    console.print(table)
    console.width = narrow


_SUMMARY = {
    0: "nothing is worse than the reference",
    1: "[red]regression or failed point[/] (exit code 1)",
    3: "a claim is undecided or unmeasured (exit code 3, because of --strict)",
    4: "nothing could be checked (exit code 4): run the suite first",
}


def _print_changes(result: CheckResult, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    from benchmarks.planning.suite import suite_names

    if not result.has_reference:
        text = "\nno reference yet: nothing to compare with."
        if result.suite in suite_names():  # a suite file of the user's own has none
            text += (
                f' `frugalbench accept {result.suite} --reason "..."` makes these records the '
                "reference."
            )
        console.print(text, soft_wrap=True)
    if not result.changes:
        if result.has_reference:
            console.print("\nno difference from the reference")
        return
    table = Table("change", "what", "reference", "now", title="against the reference")
    for change in result.changes:
        kind = f"[red]{change.kind}, regression[/]" if change.red else change.kind
        table.add_row(kind, escape(change.what), escape(change.reference), escape(change.current))
    console.print()
    _print_whole(table, console)


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
