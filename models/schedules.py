"""Values that change with training progress."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Linear:
    """A value that moves evenly from `start` (progress 0) to `end` (progress 1)."""

    start: float
    end: float

    def at(self, progress: float) -> float:
        """The value at `progress` in [0, 1].

        Raises:
            ValueError: progress lies outside [0, 1].
        """
        if not 0.0 <= progress <= 1.0:
            raise ValueError(f"progress must lie in [0, 1], not {progress}")
        return self.start + (self.end - self.start) * progress
