"""One typed, lazy registry for models, data sets, meters and engines.

Names are known without importing what they stand for. An outside package adds to a registry
through the entry-point group that the registry names.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from benchmarks.errors import FrugalbenchError, UsageError, suggest

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One name and how to come by its value.

    Attributes:
        name: registry name.
        load: called once, on the first `get`.
        origin: where it comes from, for people: a file, or an entry point and its package.
        target: what it stands for; two entries of one name must agree in it.
    """

    name: str
    load: Callable[[], T]
    origin: str
    target: object


class Registry(Generic[T]):
    """Names to values of one type, each loaded on first use.

    Args:
        kind: what a name stands for, in the singular ("model"); used in messages.
        group: entry-point group through which outside packages add to it.
        discover: yields the entries that this project itself brings; called on first use.
        accept: turns what an entry point holds into a value; raises TypeError or ValueError with
            the reason if it cannot.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str | None = None,
        discover: Callable[[], Iterable[Entry[T]]] | None = None,
        accept: Callable[[Any], T] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._discover = discover
        self._accept = accept
        self._entries: dict[str, Entry[T]] = {}
        self._values: dict[str, T] = {}
        self._filled = False

    def register(self, name: str, value: T, *, origin: str = "this process") -> None:
        """Adds a value that is at hand.

        Raises:
            UsageError: the name already stands for something else.
        """
        self.add(Entry(name, lambda: value, origin, value))

    def add(self, entry: Entry[T]) -> None:
        """Adds an entry whose value is loaded later.

        Raises:
            UsageError: the name already stands for something else.
        """
        self._fill()
        self._put(entry)

    def names(self) -> tuple[str, ...]:
        """All names, sorted; loads no value."""
        self._fill()
        return tuple(sorted(self._entries))

    def __contains__(self, name: object) -> bool:
        self._fill()
        return name in self._entries

    def get(self, name: str) -> T:
        """The value called `name`.

        Raises:
            UsageError: no such name (the message gives the nearest), or an outside package's
                entry cannot be loaded.
        """
        entry = self._entry(name)
        if name not in self._values:
            self._values[name] = entry.load()
        return self._values[name]

    def origin(self, name: str) -> str:
        """Where `name` comes from, as one short text."""
        return self._entry(name).origin

    def _entry(self, name: str) -> Entry[T]:
        self._fill()
        try:
            return self._entries[name]
        except KeyError:
            raise UsageError(suggest(name, self._entries, kind=self.kind)) from None

    def _fill(self) -> None:
        if self._filled:
            return
        self._filled = True
        try:
            for entry in self._discover() if self._discover else ():
                self._put(entry)
            for point in _entry_points().select(group=self.group) if self.group else ():
                self._put(self._from_entry_point(point))
        except BaseException:
            self._filled = False
            raise

    def _put(self, entry: Entry[T]) -> None:
        present = self._entries.setdefault(entry.name, entry)
        if present.target != entry.target:
            raise UsageError(
                f"two {self.kind}s are called '{entry.name}': one from {present.origin}, "
                f"one from {entry.origin}; rename one"
            )

    def _from_entry_point(self, point: importlib.metadata.EntryPoint) -> Entry[T]:
        package = point.dist.name if point.dist else "an unknown package"
        origin = f"package {package} ({point.value})"

        def load() -> T:
            try:
                value = point.load()
                return self._accept(value) if self._accept else value
            except FrugalbenchError:
                raise
            except Exception as error:  # an outside package may fail in any way
                raise UsageError(
                    f"{self.kind} '{point.name}' from {origin} cannot be loaded: "
                    f"{type(error).__name__}: {error}"
                ) from error

        return Entry(point.name, load, origin, point.value)


@functools.cache
def _entry_points() -> Any:
    return importlib.metadata.entry_points()
