"""Sweeps as tables: expanded in memory, and with the keys of every table in another order."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

from benchmarks.planning.expand import Expansion, PlannedPoint, expand
from benchmarks.planning.suite import parse_suite

DENSE = {"label": "dense", "model": "dense"}


LOW = {"label": "low", "model": "budgetformer", "params": {"s_max": 0.3}}


RANDOM = {"label": "random", "model": "random-at-test", "source": "low"}


def expanded(*sweeps: dict[str, Any], **suite: Any) -> Expansion:
    base = {"datasets": ["r8"], "max_length": 32, "meters": ["accuracy"], "variants": [DENSE]}
    values = {
        "schema": 1,
        "title": "A test",
        **suite,
        "sweep": [{"name": f"s{i}", **base, **sweep} for i, sweep in enumerate(sweeps)],
    }
    return expand(parse_suite(copy.deepcopy(values), Path("my.toml")))


def one(expansion: Expansion, label: str, **axes: Any) -> PlannedPoint:
    found = [p for p in expansion.points if p.point.label == label and dict(p.axes) == axes]
    assert len(found) == 1
    return found[0]


def shuffled(value: Any, order: random.Random) -> Any:
    """The same values with the keys of every table in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value
