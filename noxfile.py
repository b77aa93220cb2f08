"""Everything a developer or user runs: `nox -l` lists it, `nox -s NAME -- ARGUMENTS` runs it.

Set FRUGALBENCH_TORCH to pip arguments to choose another build of torch than the default, e.g.
FRUGALBENCH_TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu".
"""

from __future__ import annotations

import os
import shlex
import sys

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "typecheck", "tests"]

PROJECT = nox.project.load_toml("pyproject.toml")
DEFAULT_TORCH = "torch==2.13.0"


def install(session: nox.Session, *groups: str, extra: str = "") -> None:
    """Installs torch, then the checkout (editable) and dependency groups, all pinned."""
    chosen = os.environ.get("FRUGALBENCH_TORCH")
    pins = ("-c", _constraints_without_torch(session) if chosen else "constraints.txt")
    torch = shlex.split(chosen) if chosen else [DEFAULT_TORCH]
    wanted = nox.project.dependency_groups(PROJECT, *groups) if groups else ()
    session.log("installing torch and what is pinned in constraints.txt (a few minutes, once)")
    _pip_install(session, *pins, *torch)
    _pip_install(session, *pins, "-e", f".{extra}", *wanted)


def _pip_install(session: nox.Session, *arguments: str) -> None:
    # the build backend warns at every editable installation, however it is made
    quiet = {"PYTHONWARNINGS": "ignore"}
    session.run_install("python", "-m", "pip", "install", "-q", *arguments, env=quiet)


def in_bench(session: nox.Session, *words: str) -> None:
    """Runs `frugalbench WORDS` in the environment of the session `bench`: one torch is enough."""
    nox_again = (sys.executable, "-m", "nox", "-f", __file__, "-s", "bench", "--install-only")
    session.run(*nox_again, external=True, silent=True)
    session.run(".nox/bench/bin/frugalbench", *words, external=True)


def _constraints_without_torch(session: nox.Session) -> str:
    """The pins, less torch's, for a build that was chosen by hand."""
    with open("constraints.txt", encoding="utf-8") as file:  # noqa: PTH123
        lines = [line for line in file if not line.startswith("torch==")]
    path = os.path.join(session.create_tmp(), "constraints.txt")  # noqa: PTH118
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.writelines(lines)
    return path


@nox.session
def bench(session: nox.Session) -> None:
    """Fetch, run, report and check a suite: `nox -s bench -- [SUITE] [options]`; default quick."""
    install(session, extra="[yardsticks,pretrained]")
    session.run("frugalbench", "bench", *session.posargs)


@nox.session(venv_backend="none")
def report(session: nox.Session) -> None:
    """Render a suite's report from the records that are here: `nox -s report -- [SUITE]`."""
    in_bench(session, "report", *(session.posargs or ["quick"]))


@nox.session(venv_backend="none")
def check(session: nox.Session) -> None:
    """Run what is missing, then check claims and regressions: `nox -s check -- [SUITE]`."""
    in_bench(session, "bench", "--no-report", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests: `nox -s tests -- [pytest arguments]`; `-m ""` adds the slow ones."""
    install(session, "tests")
    session.run("pytest", *(session.posargs or ["-m", "not slow"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    _pip_install(session, "-c", "constraints.txt", *nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Check types."""
    install(session, "typecheck")
    session.run("mypy", *session.posargs)


@nox.session(venv_backend="none", default=False)
def fetch(session: nox.Session) -> None:
    """Bring data ahead of a run: `nox -s fetch -- [DATASET or SUITE …]`."""
    in_bench(session, "fetch", *session.posargs)
