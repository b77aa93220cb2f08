"""Reading the TOML files that people write: suites, cards and claims."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from benchmarks.errors import InvalidFileError
from benchmarks.paths import CHECKOUT


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        InvalidFileError: it cannot be read, or is no TOML.
    """
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path that no system can have
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidFileError(f"{shown(path)}: cannot be read: {reason}") from error
    try:
        return tomllib.loads(content.decode("utf-8-sig"))  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFileError(f"{shown(path)}: is not UTF-8 text (line {line})") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{shown(path)}: is not valid TOML: {error}") from error


_WORDS = {
    "Tuple": "List", "tuple": "list", "valid array": "valid list", "dictionary": "table",
    " after validation": "",
}  # fmt: skip
"""Words of the checking library that no TOML file knows, and what they are called there."""


def in_toml_words(text: str) -> str:
    """A message of the checking library in the words of the file that was checked."""
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return text


def shown(path: Path) -> str:
    """A path for messages: relative to the checkout where it lies in it."""
    return str(path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else path)
