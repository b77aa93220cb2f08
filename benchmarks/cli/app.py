"""The command line. A subcommand's module is imported only when that subcommand is used."""

from __future__ import annotations

import errno
import importlib
import io
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks import __version__
from benchmarks.errors import FrugalbenchError, FrugalbenchWarning
from benchmarks.paths import require_one_place

COMMANDS: dict[str, str] = {
    "list": "What there is, and what is available here.",
    "plan": "Say what a suite would do, and run nothing.",
    "fetch": "Bring data ahead of a run.",
    "run": "Run what a suite still misses.",
    "bench": "Fetch, run, report and check a suite.",
    "show": "Show one point with all its records.",
    "report": "Render Markdown and plots from the records alone.",
    "check": "Compare claims and records with the reference.",
    "accept": "Make the current records the reference.",
    "validate": "Check every card, suite and claim file.",
}
"""Subcommand NAME, which is the function NAME (or NAME_) of benchmarks/cli/NAME.py: its one line."""

FULL_OR_READ_ONLY = {errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EPERM}


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    plain = warnings.formatwarning
    warnings.formatwarning = lambda message, category, *where: (
        f"frugalbench: {message}\n"
        if issubclass(category, FrugalbenchWarning)
        else plain(message, category, *where)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character shows "?"
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line.

    Args:
        arguments: the words after the program's name.

    Returns:
        The exit code. A user's mistake is one message on stderr; other exceptions pass through.
    """
    try:
        require_one_place()
        build(arguments)(args=list(arguments), prog_name="frugalbench", standalone_mode=True)
    except FrugalbenchError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except OSError as error:
        if error.errno not in FULL_OR_READ_ONLY:
            raise
        return _fail(f"{error.filename or 'storage'}: {error.strerror}", 2)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application, with the real code of the one subcommand that `arguments` ask for."""
    app = typer.Typer(
        help="A reproducible benchmark suite for Transformers that spend less on attention.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, line in COMMANDS.items():
        if name == asked:
            module = importlib.import_module(f"benchmarks.cli.{name}")
            function = getattr(module, name, None) or getattr(module, f"{name}_")
            app.command(name, help=module.__doc__, short_help=line)(function)
        else:
            app.command(name, help=line)(_not_asked)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and end.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    del version


def _not_asked() -> None:
    """Stands for a subcommand whose module is not imported, since it was not asked for."""


def _fail(message: str, code: int) -> int:
    typer.echo(f"frugalbench: {message}", err=True)
    return code
