"""Suites that are another one at reduced size.

They have the same sweeps, variants and meters and go through the same code, small enough to run on a
small machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from benchmarks.catalog import METERS, MODELS
from benchmarks.errors import FrugalbenchError, InvalidFileError, suggest
from benchmarks.planning.axes import axis_called
from benchmarks.planning.suite import (
    AxisValues,
    Seeds,
    Sized,
    Strict,
    Suite,
    Sweep,
    Whole,
    axes_as_length,
    parse_suite,
    suite_path,
    texts,
)
from benchmarks.toml_files import read_toml, shown

REDUCES = "reduces"
"""The key that makes a suite file such a one."""


OF_SUITES = ("seeds", "recipe", "options")
"""What a suite says for all its sweeps, and a sweep may say for itself."""


class _Changes(Sized):
    """What a sweep gets, over what it or its suite says."""

    datasets: dict[str, str] = Field(
        default_factory=dict, description="others, by the names of those that they stand in for"
    )
    max_length: Whole | None = None
    train_fraction: float | None = Field(default=None, gt=0, le=1)
    seeds: Seeds | None = None
    params: dict[str, Any] = Field(
        default_factory=dict, description="for the sweeps with a model that has them"
    )
    without: tuple[str, ...] = Field(
        default=(), description="parameters that no sweep or variant sets any more"
    )
    recipe: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    axes: Annotated[dict[str, AxisValues], BeforeValidator(axes_as_length)] = Field(
        default_factory=dict, description="instead of the sweep's values, where it has the axis"
    )


class _Reduction(Strict):
    """A suite file with the key `reduces`."""

    schema_version: Literal[1] = Field(alias="schema")
    title: str
    description: str = ""
    reduces: str = Field(
        description="the suite whose sweeps these are: its name, or its path from this file's folder"
    )
    every: _Changes = _Changes()
    sweeps: dict[str, _Changes] = Field(
        default_factory=dict, description="by the sweep's name, over what every one gets"
    )


def in_full(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The content of an ordinary suite file, from that of one that reduces another.

    Args:
        values: content of the file.
        path: the file.

    Raises:
        UsageError: there is no suite of that name.
        InvalidFileError: a wrong key or value, or a change of what is not there; or the other suite
            is wrong, or a reduction itself.
    """
    try:
        reduction = _Reduction.model_validate(values)
    except ValidationError as error:
        raise InvalidFileError(
            "\n".join(f"{shown(path)}: {text}" for text in texts(error))
        ) from error
    try:
        source = path.parent / suite_path(reduction.reduces)
        whole = read_toml(source)
    except FrugalbenchError as error:
        raise type(error)(f"{shown(path)}: {REDUCES}: {error}") from error
    if REDUCES in whole:
        raise InvalidFileError(
            f"{shown(path)}: {REDUCES}: '{reduction.reduces}' is a reduction of "
            f"'{whole[REDUCES]}' itself; name that one"
        )
    suite = parse_suite(whole, source)
    problems = [f"{shown(path)}: {problem}" for problem in _problems(reduction, suite)]
    if problems:
        raise InvalidFileError("\n".join(problems))
    of_suite = {n: v for n, v in _given(reduction.every).items() if n in OF_SUITES}
    return {
        **_over(whole, of_suite),
        "title": reduction.title,
        "description": reduction.description,
        "sweep": [_reduced(sweep, reduction, suite) for sweep in whole["sweep"]],
    }


def _problems(reduction: _Reduction, suite: Suite) -> Iterator[str]:
    """Changes of what the other suite has not."""
    names = [sweep.name for sweep in suite.sweeps]
    for name in reduction.sweeps:
        if name not in names:
            yield f"sweeps: {suggest(name, names, kind='sweep')}"
    places = {"every": (reduction.every, suite.sweeps)}
    for sweep in suite.sweeps:
        if sweep.name in reduction.sweeps:
            places[f"sweeps.{sweep.name}"] = (reduction.sweeps[sweep.name], (sweep,))
    for where, (changes, sweeps) in places.items():
        for key, (kind, there) in _HAS.items():
            for name in getattr(changes, key):
                if not any(name in there(sweep) for sweep in sweeps):
                    yield f"{where}.{key}.{name}: {_absent(name, kind, there, sweeps, suite)}"
        for name in changes.params:
            if name in changes.without:
                yield f"{where}.params.{name}: changes nothing, for without names it too"
            elif _is_gone_over(name, sweeps):
                yield (
                    f"{where}.params.{name}: changes nothing, for every variant that has it says it "
                    "itself, or an axis does"
                )


def _set_in(sweep: Sweep) -> set[str]:
    """The parameters that a sweep or one of its variants sets."""
    tables = (sweep.params, *(variant.params for variant in sweep.variants))
    return {name for table in tables for name in table}


def _declarable_in(sweep: Sweep) -> set[str]:
    """The parameters that a model of the sweep has."""
    return {name for v in sweep.variants for name in MODELS.get(v.model).declarable()}


_HAS: dict[str, tuple[str, Callable[[Sweep], Collection[str]]]] = {
    "datasets": ("data set", lambda sweep: sweep.datasets),
    "without": ("parameter", _set_in),
    "axes": ("axis", lambda sweep: sweep.axes),
    "params": ("parameter", _declarable_in),
    "options": ("meter", lambda sweep: sweep.meters),
}
"""By the key of a change: what it names, and those that a sweep has."""


def _absent(
    name: str,
    kind: str,
    there: Callable[[Sweep], Collection[str]],
    sweeps: Sequence[Sweep],
    suite: Suite,
) -> str:
    """Why a change of `name` changes nothing in these sweeps, and where it would."""
    having = [sweep.name for sweep in suite.sweeps if name in there(sweep)]
    if having:
        own = ", ".join(sorted(there(sweeps[0]))) or "none"
        return (
            f"sweep '{sweeps[0].name}' of '{suite.name}' has no {kind} '{name}' (it has {own}); "
            f"sweeps that have it: {', '.join(having)}"
        )
    if kind == "meter" and name in METERS:
        return f"no sweep of '{suite.name}' measures it, so its options change nothing"
    known = {other for sweep in suite.sweeps for other in there(sweep)}
    if kind == "axis" and "max_length" in known:
        known.add("image_size")
    near = suggest(name, known, kind=kind).removeprefix(f"unknown {kind} '{name}'")
    return f"no sweep of '{suite.name}' has this {kind}{near}"


def _is_gone_over(name: str, sweeps: Sequence[Sweep]) -> bool:
    """Whether some variant has this parameter, but none takes it from its sweep."""
    having = [
        (sweep, variant)
        for sweep in sweeps
        for variant in sweep.variants
        if name in MODELS.get(variant.model).declarable()
    ]
    return bool(having) and all(
        name in variant.params or any(name in axis_called(axis).fields for axis in sweep.axes)
        for sweep, variant in having
    )


def _over(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those given in their place; tables are joined, key by key."""
    joined = {
        name: _over(values.get(name, {}), value) if isinstance(value, Mapping) else value
        for name, value in given.items()
    }
    return {**values, **joined}


def _given(changes: _Changes) -> dict[str, Any]:
    """What goes over a sweep's own values as it is."""
    return changes.model_dump(exclude={"axes", "datasets", "without"}, exclude_defaults=True)


def _reduced(sweep: Mapping[str, Any], reduction: _Reduction, suite: Suite) -> dict[str, Any]:
    """A sweep with the changes of every one, where its suite does not speak for it, and its own."""
    every, own = reduction.every, reduction.sweeps.get(sweep["name"], _Changes())
    given = {n: v for n, v in _given(every).items() if n in sweep or n not in OF_SUITES}
    given = _over(given, _given(own))
    if "params" in given:
        has = next(_declarable_in(s) for s in suite.sweeps if s.name == sweep["name"])
        given["params"] = {n: value for n, value in given["params"].items() if n in has}
    made = _over(sweep, given)
    if "max_length" in given:
        made.pop("image_size", None)
    datasets = every.datasets | own.datasets
    made["datasets"] = [datasets.get(name, name) for name in sweep["datasets"]]
    axes = every.axes | own.axes
    if "axes" in sweep:
        made["axes"] = {name: axes.get(name, values) for name, values in sweep["axes"].items()}
    without = every.without + own.without
    if without:
        made["variants"] = [_without(variant, without) for variant in sweep["variants"]]
        made = _without(made, without)
    return made


def _without(table: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A sweep or a variant that leaves some parameters at their defaults."""
    kept = {name: v for name, v in table.get("params", {}).items() if name not in names}
    return {**table, "params": kept}
