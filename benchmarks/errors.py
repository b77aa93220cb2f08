"""The one kind of error a user sees without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FrugalbenchError(Exception):
    """A mistake that the user can mend; the command line prints its text and exits.

    The text names the file, the field or line, the value found, and what would be right.

    Attributes:
        exit_code: what the process returns (2: wrong usage or an invalid file).
    """

    exit_code = 2


class FrugalbenchWarning(UserWarning):
    """Something the user should know that stops nothing; the command line prints its text alone."""


class UsageError(FrugalbenchError):
    """Wrong words on the command line or an impossible combination of options."""


class InvalidFileError(FrugalbenchError):
    """A suite, card, claim or record file that cannot be used as it stands."""


class DataError(FrugalbenchError):
    """A data set that is missing, altered, or not what its card says."""


class StorageError(FrugalbenchError):
    """Something stored cannot be written, or cannot be used as it is."""


class DiskError(StorageError):
    """The disk itself refuses; no other point could store anything either, so a run ends here."""


class BusyError(FrugalbenchError):
    """Another process holds what this one needs."""


class MeterError(FrugalbenchError):
    """A meter that cannot vouch for its number: counts that disagree, outputs that are not finite."""


def suggest(name: str, known: Iterable[str], *, kind: str) -> str:
    """Returns "unknown KIND 'NAME'; nearest: ...; known: ..." for an error text.

    Args:
        name: what was asked for.
        known: the names that exist.
        kind: what they name, in the singular ("model", "axis").
    """
    names = sorted(set(known))
    folded = {n.casefold(): n for n in names}
    asked = name.casefold()
    near = [folded[n] for n in difflib.get_close_matches(asked, folded, n=3, cutoff=0.5)]
    near += [n for f, n in folded.items() if asked and (asked in f or f in asked) and n not in near]
    near = near[:3]
    question = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else "."
    more = f", and {len(names) - 20} more" if len(names) > 20 else ""
    return f"unknown {kind} '{name}'{question} Known: {', '.join(names[:20]) or 'none'}{more}."
