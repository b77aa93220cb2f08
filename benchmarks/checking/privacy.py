"""What must not be in a file that is committed: absolute paths, and the names of host and user."""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
import sys
from functools import cache
from pathlib import Path

from benchmarks.paths import CHECKOUT

_ABSOLUTE = re.compile(r"(?<![\w.<>/:~])/(?:[\w.+~@%-]+/)+[\w.+~@%-]*|\b[A-Za-z]:\\\\?[\w.]+")
_ANYONE = frozenset(
    {"root", "user", "admin", "runner", "ubuntu", "debian", "vscode", "localhost", "nobody", "host"}
)
"""Names that say nothing of whose machine it is, and occur in ordinary text."""


def private_parts(text: str) -> list[str]:
    """Absolute paths, and this machine's host, user and folder names, found in `text`."""
    found = [match.group() for match in _ABSOLUTE.finditer(text)]
    found += [folder for folder in _own_folders() if folder in text]
    found += [name for name in own_names() if re.search(rf"\b{re.escape(name)}\b", text)]
    return list(dict.fromkeys(found))


@cache
def own_names() -> tuple[str, ...]:
    """This machine's host name and the user's name, unless they are names of anyone's."""
    names = [socket.gethostname(), socket.gethostname().partition(".")[0]]
    with contextlib.suppress(KeyError, OSError):  # a user id without a name, as in containers
        names.append(getpass.getuser())
    return tuple({name for name in names if len(name) > 2 and name.lower() not in _ANYONE})


@cache
def _own_folders() -> tuple[str, ...]:
    folders = {str(Path.home()), str(CHECKOUT), sys.prefix}
    return tuple(folder for folder in folders if folder.count("/") > 1)
