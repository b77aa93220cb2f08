"""What is wrong with a suite's names and combinations, before anything is expanded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import DATASETS, METERS, MODELS, WEIGHTS
from benchmarks.errors import suggest
from benchmarks.planning.axes import AXES, SEED, axis_called, shared_fields
from benchmarks.planning.declared import LARGEST_SEED, checked, declared_recipe
from benchmarks.training.recipe import Recipe

if TYPE_CHECKING:
    from benchmarks.planning.suite import Suite, Sweep, Variant
    from models.config import ModelConfig

PLACE_KEYS = ("dataset", "variant", "seed")
"""What a match may name beside the axes."""

MOST_POINTS = 10_000
"""Most points that one sweep may ask for; beyond it even planning would take minutes."""


def problems(suite: Suite) -> Iterator[str]:
    """Every problem as "key path: what is wrong and what would be right"."""
    yield from _recipe(suite.recipe)
    yield from _options(suite.options)
    yield from _repeated((s.name for s in suite.sweeps), "sweep", "name")
    yield from _repeated(suite.seeds, "seeds", "seed")
    for index, sweep in enumerate(suite.sweeps):
        recipe = {**suite.recipe, **sweep.recipe}
        for problem in [
            *_recipe(sweep.recipe),
            *_changes(recipe, sweep),
            *_sweep(sweep, suite.seeds),
        ]:
            yield f"sweep[{index}] '{sweep.name}': {problem}"


def _recipe(values: Mapping[str, Any]) -> Iterator[str]:
    known = [field.name for field in fields(Recipe)]
    yield from _unknown(values, known, "recipe", "recipe value")
    if not set(values) - set(known):
        try:
            declared_recipe(values)
        except ValueError as error:
            yield f"recipe: {str(error).removeprefix('recipe.')}"


def _changes(recipe: Mapping[str, Any], sweep: Sweep) -> Iterator[str]:
    """Images can be changed at random, texts cannot."""
    texts = [n for n in sweep.datasets if n in DATASETS and not DATASETS.get(n).is_image]
    if not sweep.trained or not texts:
        return
    for name in ("augment", "mixup", "cutmix"):
        default = getattr(Recipe, name)
        if recipe.get(name, default) != default:
            yield (
                f"recipe.{name}: changes images, but data set '{texts[0]}' has texts; give it to the "
                "sweeps of images alone"
            )


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
    asked = math.prod(
        map(len, (sweep.datasets, sweep.variants, sweep.seeds or seeds, *sweep.axes.values()))
    )
    if asked > MOST_POINTS:
        yield f"asks for {asked} points, and {MOST_POINTS} is the most; split it into several suites"
    labels = [variant.label for variant in sweep.variants]
    if sweep.baseline is not None and sweep.baseline not in labels:
        yield f"baseline: {suggest(sweep.baseline, labels, kind='variant')}"
    for index, meter in enumerate(sweep.meters):
        if meter not in METERS:
            continue
        spec = METERS.get(meter)
        if spec.kind == "pair" and sweep.baseline is None:
            yield f"meters[{index}]: '{meter}' measures pairs; give the sweep a `baseline`"
        for name in sweep.datasets if spec.of_data else ():
            if name in DATASETS and DATASETS.get(name).is_image:
                yield f"meters[{index}]: '{meter}' measures texts, but data set '{name}' has images"
        if spec.needs_training and not sweep.trained:
            yield f"meters[{index}]: '{meter}' says nothing about fresh weights (trained = false)"
    if not sweep.trained:
        for key in ("seeds", "train_fraction", "recipe"):
            if key in sweep.model_fields_set:
                yield f"{key}: means nothing where trained = false"
    places = [("include", i, m) for i, m in enumerate(sweep.include)]
    places += [("exclude", i, m) for i, m in enumerate(sweep.exclude)]
    places += [("skip", i, s.match) for i, s in enumerate(sweep.skip)]
    for key, index, match in places:
        where = f"{key}[{index}]"
        yield from _match(sweep, seeds, match, where, joins=key == "include")
    configs: dict[str, type[ModelConfig]] = {}
    for index, variant in enumerate(sweep.variants):
        where = f"variants[{index}] '{variant.label}'"
        if variant.model not in MODELS:
            yield f"{where}: model: {suggest(variant.model, MODELS.names(), kind='model')}"
            continue
        configs[variant.label] = MODELS.get(variant.model)
        yield from (f"{where}: model: {p}" for p in _reads(sweep, configs[variant.label]))
        yield from (f"{where}: {p}" for p in _variant(sweep, variant, configs[variant.label]))
    if len(configs) == len(sweep.variants):
        every = {name for config in configs.values() for name in config.declarable()}
        yield from _unknown(sweep.params, every, "params", "parameter")
        for axis in (axis_called(name) for name in sweep.axes if name in _axis_names(sweep)):
            if not any(axis.applies(config) for config in configs.values()):
                yield f"axes.{axis.name}: no variant's model has {' and '.join(axis.fields)}"


def _reads(sweep: Sweep, config: type[ModelConfig]) -> Iterator[str]:
    for name in sweep.datasets:
        if name not in DATASETS:
            continue
        kind = "image" if DATASETS.get(name).is_image else "text"
        if kind != config.inputs:
            yield f"reads {config.inputs}s, but data set '{name}' has {kind}s"


def _options(options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from _unknown(options, METERS.names(), "options", "meter")
    for name, values in options.items():
        if name in METERS:
            known = METERS.get(name).options
            yield from _unknown(values, known, f"options.{name}", f"option of '{name}'")
            for option, value in values.items():
                if option in known and not known[option].takes(value):
                    yield f"options.{name}.{option}: must be {known[option].text}, not {value!r}"


def _axes(sweep: Sweep) -> Iterator[str]:
    known = _axis_names(sweep)
    yield from _unknown_axes(sweep.axes, [*known, SEED], "axes", "axis")
    varied = [name for name in sweep.axes if name in known]
    for one, other, field in shared_fields(varied):
        yield f"axes: '{one}' and '{other}' both set {field}; keep one of them"
    for name in varied:
        if axis_called(name).training and not sweep.trained:
            yield f"axes.{name}: means nothing where trained = false"
    if SEED in sweep.axes and (sweep.seeds or not sweep.trained):
        yield "axes.seed: give seeds as an axis or as `seeds`, and only where trained = true"
    for seed in sweep.axes.get(SEED, []):
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
            yield (
                f"axes.seed: a seed is a whole number of at least 0, not {seed!r} "
                f"(and at most {LARGEST_SEED})"
            )
    for name, values in sweep.axes.items():
        yield from _repeated(map(repr, values), f"axes.{name}", "value")


def _axis_names(sweep: Sweep) -> list[str]:
    """The named axes, and every field that one of the sweep's models lets a suite declare."""
    models = [MODELS.get(v.model) for v in sweep.variants if v.model in MODELS]
    return list(dict.fromkeys([*AXES, *(name for model in models for name in model.declarable())]))


def _variant(sweep: Sweep, variant: Variant, config: type[ModelConfig]) -> Iterator[str]:
    known = config.declarable()
    yield from _unknown(variant.params, known, "params", f"parameter of '{variant.model}'")
    for name, value in {**sweep.params, **variant.params}.items():
        if name in known:
            try:
                checked(config, name, value)
            except ValueError as error:
                yield f"params.{error}"
            else:
                if name == "pretrained" and value not in WEIGHTS:
                    yield f"params.{name}: {suggest(value, WEIGHTS.names(), kind='weights')}"
    for axis in (axis_called(name) for name in sweep.axes if name in _axis_names(sweep)):
        for name in axis.fields if axis.applies(config) else ():
            if name in variant.params:
                yield f"params.{name}: the axis '{axis.name}' sets it too; keep one of them"
    labels = [other.label for other in sweep.variants if other.label != variant.label]
    needs = (("source", variant.source, config.source), ("base", variant.base, config.base))
    for key, label, takes in needs:
        if takes == "none":
            if label is not None:
                what = "depends on no other" if key == "source" else "starts from no other"
                yield f"{key}: model '{variant.model}' {what}; remove it"
        elif label is None and takes == "teacher" and not sweep.trained:
            continue  # with fresh weights it needs none
        elif label is None:
            yield (
                f"{key}: model '{variant.model}' takes its {takes} from a trained model; "
                f"give the label of one ({', '.join(labels) or 'the sweep has no other'})"
            )
        elif label not in labels:
            yield f"{key}: {suggest(label, labels, kind='variant')}"
        elif not sweep.trained:
            yield f"{key}: model '{variant.model}' depends on training, but trained = false"
        else:
            yield from _circle(sweep, key, [variant.label, label])


def _circle(sweep: Sweep, key: str, chain: list[str]) -> Iterator[str]:
    """The first way round from a variant to one that it needs already, if there is any."""
    if chain[-1] in chain[:-1]:
        yield f"{key}: depends on itself: {' -> '.join(chain)}"
        return
    known = [variant.label for variant in sweep.variants]
    for label in sweep.variant(chain[-1]).needs:
        if label in known:
            found = list(_circle(sweep, key, [*chain, label]))
            if found:
                yield from found
                return


def _match(
    sweep: Sweep, seeds: tuple[int, ...], match: Mapping[str, Any], where: str, *, joins: bool
) -> Iterator[str]:
    every = _axis_names(sweep)
    axes = every if joins else [name for name in sweep.axes if name != SEED]
    if not joins:
        axes += [name for entry in sweep.include for name in entry if name in every]
    if not match:
        yield f"{where}: is empty; name an axis, or one of {', '.join(PLACE_KEYS)}"
    yield from _unknown_axes(match, [*axes, *PLACE_KEYS], where, "axis or place")
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
        varied = [name for name in dict.fromkeys([*sweep.axes, *match]) if name in every]
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


def _unknown_axes(names: Any, known: list[str], where: str, kind: str) -> Iterator[str]:
    """As `_unknown`, but suggests an axis' other name too; the name itself is gone by then."""
    others = ["image_size"] if "max_length" in known else []
    yield from _unknown(names, [*known, *others], where, kind)


def _unknown(names: Any, known: Any, where: str, kind: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: {suggest(str(name), known, kind=kind)}"


def _repeated(values: Any, where: str, what: str) -> Iterator[str]:
    for value, times in Counter(values).items():
        if times > 1:
            yield f"{where}: {what} {value} is given {times} times"
