"""What is wrong with a suite's names and combinations, before anything is expanded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import DATASETS, METERS, MODELS
from benchmarks.errors import suggest
from benchmarks.planning.axes import AXES, SEED, shared_fields
from benchmarks.planning.declared import checked, declared_recipe
from benchmarks.training.recipe import Recipe

if TYPE_CHECKING:
    from benchmarks.planning.suite import Suite, Sweep, Variant
    from models.config import EncoderConfig

PLACE_KEYS = ("dataset", "variant", "seed")
"""What a match may name beside the axes."""


def problems(suite: Suite) -> Iterator[str]:
    """Every problem as "key path: what is wrong and what would be right"."""
    known = [field.name for field in fields(Recipe)]
    yield from _unknown(suite.recipe, known, "recipe", "recipe value")
    if not set(suite.recipe) - set(known):
        try:
            declared_recipe(suite.recipe)
        except ValueError as error:
            yield f"recipe: {str(error).removeprefix('recipe.')}"
    yield from _options(suite.options)
    yield from _repeated((s.name for s in suite.sweeps), "sweep", "name")
    yield from _repeated(suite.seeds, "seeds", "seed")
    for index, sweep in enumerate(suite.sweeps):
        for problem in _sweep(sweep, suite.seeds):
            yield f"sweep[{index}] '{sweep.name}': {problem}"


def _sweep(sweep: Sweep, seeds: tuple[int, ...]) -> Iterator[str]:
    yield from _unknown(sweep.datasets, DATASETS.names(), "datasets", "data set")
    yield from _unknown(sweep.meters, METERS.names(), "meters", "meter")
    yield from _options(sweep.options)
    for name in sweep.datasets if sweep.trained else ():
        if name in DATASETS and DATASETS.get(name).source.kind == "generated":
            yield f"datasets: '{name}' is generated, nothing can be learned from it: trained = false"
    yield from _repeated(sweep.datasets, "datasets", "data set")
    yield from _repeated((v.label for v in sweep.variants), "variants", "label")
    yield from _repeated(sweep.seeds or (), "seeds", "seed")
    yield from _axes(sweep)
    labels = [variant.label for variant in sweep.variants]
    if sweep.baseline is not None and sweep.baseline not in labels:
        yield f"baseline: {suggest(sweep.baseline, labels, kind='variant')}"
    for index, meter in enumerate(sweep.meters):
        if meter not in METERS:
            continue
        spec = METERS.get(meter)
        if spec.kind == "pair" and sweep.baseline is None:
            yield f"meters[{index}]: '{meter}' measures pairs; give the sweep a `baseline`"
        if spec.needs_training and not sweep.trained:
            yield f"meters[{index}]: '{meter}' says nothing about fresh weights (trained = false)"
    if not sweep.trained:
        for key in ("seeds", "train_fraction"):
            if key in sweep.model_fields_set:
                yield f"{key}: means nothing where trained = false"
    places = [("include", i, m) for i, m in enumerate(sweep.include)]
    places += [("exclude", i, m) for i, m in enumerate(sweep.exclude)]
    places += [("skip", i, s.match) for i, s in enumerate(sweep.skip)]
    for key, index, match in places:
        where = f"{key}[{index}]"
        yield from _match(sweep, seeds, match, where, joins=key == "include")
    configs: dict[str, type[EncoderConfig]] = {}
    for index, variant in enumerate(sweep.variants):
        where = f"variants[{index}] '{variant.label}'"
        if variant.model not in MODELS:
            yield f"{where}: model: {suggest(variant.model, MODELS.names(), kind='model')}"
            continue
        configs[variant.label] = MODELS.get(variant.model)
        yield from (f"{where}: {p}" for p in _variant(sweep, variant, configs[variant.label]))
    if len(configs) == len(sweep.variants):
        every = {name for config in configs.values() for name in config.declarable()}
        yield from _unknown(sweep.params, every, "params", "parameter")
        for axis in (AXES[name] for name in sweep.axes if name in AXES):
            if not any(axis.applies(config) for config in configs.values()):
                yield f"axes.{axis.name}: no variant's model has {' and '.join(axis.fields)}"


def _options(options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from _unknown(options, METERS.names(), "options", "meter")
    for name, values in options.items():
        if name in METERS:
            kind = f"option of '{name}'"
            yield from _unknown(values, METERS.get(name).options, f"options.{name}", kind)


def _axes(sweep: Sweep) -> Iterator[str]:
    known = [*AXES, SEED]
    yield from _unknown(sweep.axes, known, "axes", "axis")
    varied = [name for name in sweep.axes if name in AXES]
    for one, other, field in shared_fields(varied):
        yield f"axes: '{one}' and '{other}' both set {field}; keep one of them"
    for name in varied:
        if AXES[name].training and not sweep.trained:
            yield f"axes.{name}: means nothing where trained = false"
    if SEED in sweep.axes and (sweep.seeds or not sweep.trained):
        yield "axes.seed: give seeds as an axis or as `seeds`, and only where trained = true"
    for seed in sweep.axes.get(SEED, []):
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            yield f"axes.seed: a seed is a whole number of at least 0, not {seed!r}"
    for name, values in sweep.axes.items():
        yield from _repeated(map(repr, values), f"axes.{name}", "value")


def _variant(sweep: Sweep, variant: Variant, config: type[EncoderConfig]) -> Iterator[str]:
    known = config.declarable()
    yield from _unknown(variant.params, known, "params", f"parameter of '{variant.model}'")
    for name, value in {**sweep.params, **variant.params}.items():
        if name in known:
            try:
                checked(config, name, value)
            except ValueError as error:
                yield f"params.{error}"
    for axis in (AXES[name] for name in sweep.axes if name in AXES):
        for name in axis.fields if axis.applies(config) else ():
            if name in variant.params:
                yield f"params.{name}: the axis '{axis.name}' sets it too; keep one of them"
    labels = [other.label for other in sweep.variants if other.label != variant.label]
    if config.source == "none":
        if variant.source is not None:
            yield f"source: model '{variant.model}' depends on no other; remove it"
    elif variant.source is None:
        yield (
            f"source: model '{variant.model}' takes its {config.source} from a trained model; "
            f"give the label of one ({', '.join(labels) or 'the sweep has no other'})"
        )
    elif variant.source not in labels:
        yield f"source: {suggest(variant.source, labels, kind='variant')}"
    elif not sweep.trained:
        yield f"source: model '{variant.model}' depends on training, but trained = false"
    else:
        chain = [variant.label]
        step: str | None = variant.source
        while step is not None and step in (v.label for v in sweep.variants):
            chain.append(step)
            if chain.count(step) > 1:
                yield f"source: depends on itself: {' -> '.join(chain)}"
                break
            step = sweep.variant(step).source


def _match(
    sweep: Sweep, seeds: tuple[int, ...], match: Mapping[str, Any], where: str, *, joins: bool
) -> Iterator[str]:
    axes = [*AXES] if joins else [name for name in sweep.axes if name != SEED]
    if not joins:
        axes += [name for entry in sweep.include for name in entry if name in AXES]
    if not match:
        yield f"{where}: is empty; name an axis, or one of {', '.join(PLACE_KEYS)}"
    yield from _unknown(match, [*axes, *PLACE_KEYS], where, "axis or place")
    places: dict[str, list[Any]] = {
        "dataset": list(sweep.datasets),
        "variant": [variant.label for variant in sweep.variants],
        "seed": sweep.axes.get(SEED, list(sweep.seeds or seeds)) if sweep.trained else [0],
    }
    for key, known in places.items():
        for value in as_list(match.get(key, [])):
            if value not in known:
                yield f"{where}.{key}: {suggest(str(value), map(str, known), kind=key)}"
    if joins:
        varied = [name for name in dict.fromkeys([*sweep.axes, *match]) if name in AXES]
        for one, other, field in shared_fields(varied):
            yield f"{where}: '{one}' and '{other}' both set {field}; keep one of them"
        return
    for name in match:
        if name in sweep.axes:
            values = [*sweep.axes[name], *(e[name] for e in sweep.include if name in e)]
            if not any(fits(value, match[name]) for value in values):
                shown = ", ".join(map(str, values))
                yield f"{where}.{name}: {match[name]!r} is no value of this axis ({shown})"


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as a list of one."""
    return value if isinstance(value, list) else [value]


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is the one wanted, or one of several wanted."""
    return bool(value == wanted or (isinstance(wanted, list) and value in wanted))


def _unknown(names: Any, known: Any, where: str, kind: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: {suggest(str(name), known, kind=kind)}"


def _repeated(values: Any, where: str, what: str) -> Iterator[str]:
    for value, times in Counter(values).items():
        if times > 1:
            yield f"{where}: {what} {value} is given {times} times"
