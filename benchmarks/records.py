"""The record: what one meter said about one point, or about one pair of points.

One JSON file each. The schema is versioned; a record of another version is refused with a message.
A record holds no host name, user name, absolute path or text of a data set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

SHARES = (
    "accuracy", "macro_f1", "soft_accuracy", "deleted_accuracy", "validation_accuracy",
    "validation_macro_f1", "validation_soft_accuracy",
)  # fmt: skip
"""Names of values that are fractions from 0 to 1."""

AMOUNTS = (
    "macs", "macs_at_k", "macs_attention", "macs_attention_core", "macs_controllers", "macs_executed",
    "flops", "elementwise", "parameters", "parameter_bytes", "peak_memory", "latency", "seconds",
    "train_seconds", "train_steps", "energy", "power", "emissions",
)  # fmt: skip
"""Names of values that are at least 0."""

CONTEXTS: dict[tuple[str, str], tuple[frozenset[str], ...]] = {
    **{
        ("latency", name): (frozenset({"batch_size"}),)
        for name in ("speedup", "promised_speedup", "realised_share")
    },
    ("latency", "latency"): (frozenset({"batch_size", "who"}),),
    ("memory", "peak_memory"): (frozenset({"batch_size"}),),
    ("sparsity", "sparsity"): (frozenset({"measure", "queries"}),),
    **{
        ("deletion", name): (frozenset({"layer"}), frozenset({"group", "layers"}))
        for name in ("deleted_accuracy", "accuracy_drop", "informative")
    },
}
"""By meter and value, what a context must say, one set or another, for the value to mean anything."""

WHOLE = ("batch_size", "layer")
"""Parts of a context that are whole numbers."""

SLACK = 1e-9
"""How far, relatively, rounding may put a value beyond an end of its own interval."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Strict):
    """One number with its unit and, where there is one, its interval."""

    name: str = Field(description="field's standard term, e.g. accuracy, macs, speedup")
    value: float
    unit: str = Field(
        description="fraction, MACs, FLOPs, bytes, s, ratio, heads, tokens, J, W, gCO2e, count"
    )
    n: int | None = Field(default=None, description="how many observations it rests on")
    low: float | None = Field(default=None, description="lower end of the interval")
    high: float | None = Field(default=None, description="upper end of the interval")
    method: str | None = Field(default=None, description="how the interval was made, e.g. wilson")
    confidence: float | None = Field(default=None, description="the interval's nominal level")
    context: dict[str, int | float | str] = Field(
        default_factory=dict, description="what the number is for, e.g. {'batch_size': 32}"
    )


class Failure(_Strict):
    """Why a record has no values."""

    type: str
    message: str
    traceback: str = Field(description="with file names relative to the checkout")


class DataUsed(_Strict):
    """The data the number was measured on."""

    name: str
    split: Literal["train", "validation", "test", "generated"]
    n: int
    hash: str = Field(description="identity of card, package, splits and encoding")
    partial: bool = False
    note: str = Field(default="", description="what is partial, lossy, truncated or derived")


class Key(_Strict):
    """The cache key and the parts it was made of; decides whether a number may be reused."""

    cache_key: str
    source: str = Field(description="hash of the source closure")
    data: str
    libraries: dict[str, str]
    machine: str | None = Field(
        default=None, description="fingerprint, for time, memory and energy only"
    )


class Environment(_Strict):
    """Where the number comes from, without saying whose machine it is."""

    python: str
    libraries: dict[str, str]
    os: str
    cpu: str
    cores: int
    memory_gib: float
    threads: int
    load_before: float | None = None
    load_after: float | None = None


class Record(_Strict):
    """What one meter said about one point or pair."""

    schema_version: Literal[1] = 1
    meter: str
    kind: Literal["point", "pair"]
    status: Literal["ok", "failed"]
    point_id: str
    group_id: str
    label: str
    seed: int
    point: dict[str, Any] = Field(description="the declared values of the point")
    baseline_point_id: str | None = None
    baseline_label: str | None = None
    baseline: dict[str, Any] | None = Field(
        default=None, description="the baseline's declared values"
    )
    resolved: dict[str, Any] = Field(
        default_factory=dict, description="the model's full configuration as built"
    )
    weights_seed: int | None = Field(default=None, description="seed of the weights measured")
    data: DataUsed | None = None
    values: list[Value] = Field(default_factory=list)
    series: dict[str, list[Any]] = Field(
        default_factory=dict, description="short named lists, e.g. the loss after each epoch"
    )
    info: dict[str, Any] = Field(
        default_factory=dict, description="facts beside the numbers, e.g. the energy source"
    )
    arrays: str | None = Field(default=None, description="name of the Parquet file beside this one")
    arrays_sha256: str | None = None
    warnings: list[str] = Field(default_factory=list, description="e.g. 'noisy: IQR/median 14 %'")
    failure: Failure | None = None
    key: Key
    environment: Environment
    created: str = Field(description="UTC, ISO 8601")
    duration_s: float = Field(description="wall seconds that measuring took")

    def get(self, name: str, **context: float | str) -> Value | None:
        """The first value called `name` whose context holds all of `context`."""
        for value in self.values:
            if value.name == name and context.items() <= value.context.items():
                return value
        return None


def wrong_numbers(record: Record) -> Iterator[str]:
    """Numbers that nothing measured can have, each as "NAME is NUMBER, and what would be right".

    A range goes by a value's name, so what a meter from outside calls otherwise may be any number.
    """
    for value in record.values:
        context = ", ".join(f"{key}={item}" for key, item in value.context.items())
        name = f"{value.name} ({context})" if context else value.name
        numbers = {"": value.value, "low of ": value.low, "high of ": value.high}
        found = {f"{end}{name}": x for end, x in numbers.items() if x is not None}
        bad = {what: x for what, x in found.items() if not math.isfinite(x)}
        for what, x in bad.items():
            yield f"{what} is {x}, not a number"
        if not bad:
            yield from _out_of_range(value, name, found)
        if value.n is not None and value.n < 0:
            yield f"n of {name} is {value.n}, and must be at least 0"
        yield from _wrong_context(record.meter, value, name)


def _wrong_context(meter: str, value: Value, name: str) -> Iterator[str]:
    context = value.context
    known = CONTEXTS.get((meter, value.name), ())
    if known and not any(parts <= context.keys() for parts in known):
        wanted = " or ".join(" and ".join(sorted(parts)) for parts in known)
        yield f"the context of {name} is {context or 'empty'}, and must say {wanted}"
    for part in WHOLE:
        if part in context and type(context[part]) is not int:
            yield f"{part} of {name} is {context[part]!r}, and must be a whole number"
    layers = context.get("layers")
    if layers is not None and not re.fullmatch(r"\d+-\d+", str(layers)):
        yield f"layers of {name} is {layers!r}, and must be FIRST-LAST"


def _out_of_range(value: Value, name: str, found: dict[str, float]) -> Iterator[str]:
    if value.name in SHARES and value.unit != "fraction":
        yield f"{name} has the unit '{value.unit}', and must have 'fraction'"
    for what, x in found.items():
        # at none and at all right, an interval's ends miss 0 and 1 by a rounding error
        if value.name in SHARES and not -SLACK <= x <= 1 + SLACK:
            yield f"{what} is {x}, and must be from 0 to 1"
        elif value.name in AMOUNTS and x < 0:
            yield f"{what} is {x}, and must be at least 0"
    low = -math.inf if value.low is None else value.low - SLACK * abs(value.low)
    high = math.inf if value.high is None else value.high + SLACK * abs(value.high)
    if not low <= value.value <= high:
        yield (
            f"{name} is {value.value}, and must lie in its own interval [{value.low}, {value.high}]"
        )
