"""Random choices whose values can never change with a library: they are read off a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_BLOCK = 512


class Stream:
    """An endless sequence of choices that depends on its name alone.

    The bytes are those of SHAKE-256 over the name, read four at a time (little-endian).

    Args:
        name: what the choices are for; another name gives others.
    """

    def __init__(self, name: str) -> None:
        self._hash = hashlib.shake_256(name.encode())
        self._bytes = b""
        self._at = 0

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, each as likely as any other."""
        # numbers beyond the last whole multiple of n are drawn again, or small ones would be likelier
        limit = 2**32 - 2**32 % n
        while True:
            if self._at == len(self._bytes):
                self._bytes = self._hash.digest(len(self._bytes) + _BLOCK)
            number = int.from_bytes(self._bytes[self._at : self._at + 4], "little")
            self._at += 4
            if number < limit:
                return number % n

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in another order (Fisher and Yates)."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """So many different items, in random order."""
        return self.shuffled(items)[:n]
