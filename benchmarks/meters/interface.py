"""What a meter is: torch-free facts about it, and the measurement it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from benchmarks.data.load import AnyData
    from benchmarks.planning.points import Point
    from benchmarks.records import DataUsed, Value
    from benchmarks.training.artifacts import Artifact
    from models.interface import Classifier


@dataclass(frozen=True)
class OptionKind:
    """What values an option of a meter takes.

    Attributes:
        text: the values in words, as they end "must be ...".
        takes: whether a value from a suite file is one of them.
    """

    text: str
    takes: Callable[[Any], bool]


@dataclass(frozen=True)
class MeterSpec:
    """Torch-free description; the planner needs no more than this.

    Attributes:
        name: registry name.
        target: `module:function` that measures; for a replicated meter `module:Class` with
            `sample` and `combine`.
        summary: one line for `frugalbench list meters`.
        kind: whether it measures one point or a pair (candidate and baseline).
        exclusive: it must have the machine to itself.
        machine_bound: its cache key holds the machine's fingerprint.
        first_seed_only: measured on the first seed's weights alone.
        of_data: it measures the inputs, not the model: once for all points with the same inputs.
        needs_training: it can say nothing about fresh weights.
        replicates: 0 for a meter that measures in one go; else the number of fresh processes it
            wants by default (option `n_processes`), each of which gives one sample.
        libraries: distributions whose version is part of its cache key, beside torch's.
        options: the options that a suite may set, by name, and what each takes.
    """

    name: str
    target: str
    summary: str
    kind: Literal["point", "pair"] = "point"
    exclusive: bool = False
    machine_bound: bool = False
    first_seed_only: bool = False
    of_data: bool = False
    needs_training: bool = True
    replicates: int = 0
    libraries: tuple[str, ...] = ()
    options: Mapping[str, OptionKind] = field(default_factory=dict, hash=False)


@dataclass
class Subject:
    """One point, ready to be measured: the model in eval mode with its weights, and its data.

    Attributes:
        base: prepares the trained model whose weights this one started from, if it did.
    """

    point: Point
    model: Classifier
    data: AnyData
    artifact: Artifact | None
    base: Callable[[], Subject] | None = None


@dataclass
class Measurement:
    """What a meter found; the runner adds identity, key and environment and stores it."""

    values: list[Value]
    data: DataUsed | None = None
    series: dict[str, list[Any]] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    arrays: pd.DataFrame | None = None
    warnings: list[str] = field(default_factory=list)


class ReplicatedMeter(Protocol):
    """A meter that needs several fresh processes, alone on the machine.

    `sample` runs once in each process and handles several items in turn, so that starting a
    process is paid once; `combine` makes one measurement of one item's samples, without torch.
    """

    def sample(
        self,
        items: Sequence[tuple[Subject, Subject | None]],
        replicate: int,
        options: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """One JSON-able sample per item (candidate, and baseline for a pair meter), in order."""

    def combine(
        self, samples: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Measurement:
        """One measurement from one item's samples, one sample per process."""
