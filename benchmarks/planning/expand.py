"""From a suite to its points: a pure function of the suite and the models' configurations.

The order is that of the file (sweeps, seeds, data sets, combinations, variants), sorted by stage;
a source always comes before the points that depend on it. Equal points are planned once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import METERS, MODELS, WEIGHTS
from benchmarks.errors import InvalidFileError
from benchmarks.planning.axes import SEED, Draft, axis_called, in_order
from benchmarks.planning.declared import (
    configuration,
    configuration_of,
    declared_params,
    declared_recipe,
)
from benchmarks.planning.lint import PLACE_KEYS, fits
from benchmarks.planning.points import Point
from benchmarks.planning.suite import Suite, Sweep, Variant

if TYPE_CHECKING:
    from models.config import ModelConfig


@dataclass(frozen=True)
class Use:
    """Where in a suite a point stands.

    Attributes:
        sweep: name of the sweep.
        label: the variant's label there.
        axes: value of each axis that applies to the point's model.
    """

    sweep: str
    label: str
    axes: Mapping[str, Any]


@dataclass(frozen=True)
class PlannedPoint:
    """One point of a suite and what is wanted of it.

    Attributes:
        point: the point.
        sweep: the sweep that names it first.
        stage: later stages run later.
        meters: what measures it; empty for a point that only serves others.
        baseline: what it is paired with; None for the baseline itself.
        axes: value of each axis of `sweep` that applies to it.
        uses: every place in the suite where it stands; the first is (sweep, label, axes).
    """

    point: Point
    sweep: str
    stage: int
    meters: tuple[str, ...]
    baseline: Point | None
    axes: Mapping[str, Any]
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """What a suite leaves out on purpose, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class Expansion:
    """A suite, its points in order, and what it skips."""

    suite: Suite
    points: tuple[PlannedPoint, ...]
    skipped: tuple[Skipped, ...]


def expand(suite: Suite) -> Expansion:
    """All points of a suite, each once, sources before the points that depend on them.

    Raises:
        InvalidFileError: a combination that its model refuses, or one point with two baselines.
    """
    found = _Found(suite)
    for sweep in suite.sweeps:
        for cell in _cells(suite, sweep):
            for variant in sweep.variants:
                found.add(cell, variant)
    points = sorted(found.points.values(), key=lambda planned: planned.stage)
    return Expansion(suite, tuple(points), tuple(dict.fromkeys(found.skipped)))


@dataclass(frozen=True)
class _Drafted:
    """What a variant declares at one combination of axis values, whatever the seed and data set."""

    params: dict[str, Any]
    recipe: dict[str, Any] | None
    max_length: int
    train_fraction: float
    axes: dict[str, Any]


@dataclass(frozen=True)
class _Cell:
    """What all variants of a sweep share at one seed, data set and combination of axis values.

    Attributes:
        drafts: of this combination, by variant, shared with the other seeds and data sets.
        made: points of this cell, by variant.
    """

    suite: Suite
    sweep: Sweep
    seed: int
    first_seed: bool
    stage: int
    dataset: str
    axes: Mapping[str, Any]
    only: Mapping[str, Any] | None = None
    drafts: dict[str, _Drafted] = field(default_factory=dict)
    made: dict[str, Point] = field(default_factory=dict)

    def matches(self, match: Mapping[str, Any], variant: Variant) -> bool:
        places = {"dataset": self.dataset, "variant": variant.label, "seed": self.seed}
        here = {**self.axes, **places}
        return all(key in here and fits(here[key], value) for key, value in match.items())

    def wants(self, variant: Variant) -> bool:
        """Whether the suite names this point; `exclude` cuts the product, not what is included."""
        if self.only is not None:
            return self.matches(self.only, variant)
        return not any(self.matches(match, variant) for match in self.sweep.exclude)

    def skip_reason(self, variant: Variant) -> str | None:
        for skip in self.sweep.skip:
            if self.matches(skip.match, variant):
                return skip.reason
        for kind, label in (("source", variant.source), ("base", variant.base)):
            if label is not None:
                reason = self.skip_reason(self.sweep.variant(label))
                if reason:
                    return f"its {kind} '{label}' is skipped: {reason}"
        return None

    def describe(self, variant: Variant) -> str:
        values = [f"{name} = {value}" for name, value in self.axes.items()]
        parts = [f"sweep '{self.sweep.name}'", f"variant '{variant.label}'", self.dataset, *values]
        return ", ".join([*parts, f"seed {self.seed}"] if self.sweep.trained else parts)


def _cells(suite: Suite, sweep: Sweep) -> Iterator[_Cell]:
    seeds = tuple(sweep.axes.get(SEED, sweep.seeds or suite.seeds)) if sweep.trained else (0,)
    combinations = list(_combinations(sweep))
    drafts: list[dict[str, _Drafted]] = [{} for _ in combinations]
    for index, seed in enumerate(seeds):
        later = suite.seeds.index(seed) if seed in suite.seeds else len(suite.seeds)
        stage = sweep.stage + (later if sweep.trained else 0)
        for dataset in sweep.datasets:
            for (axes, only), drafted in zip(combinations, drafts, strict=True):
                yield _Cell(suite, sweep, seed, index == 0, stage, dataset, axes, only, drafted)


def _combinations(
    sweep: Sweep,
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Axis values, in the order in which axes apply; beside them what `include` restricts."""
    names = in_order(sweep.axes)
    for values in itertools.product(*(sweep.axes[name] for name in names)):
        yield dict(zip(names, values, strict=True)), None
    for entry in sweep.include:
        axes = {name: entry[name] for name in in_order(entry) if name not in PLACE_KEYS}
        yield axes, {key: entry[key] for key in PLACE_KEYS if key in entry}


@dataclass
class _Found:
    suite: Suite
    points: dict[str, PlannedPoint] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, cell: _Cell, variant: Variant) -> None:
        if not cell.wants(variant):
            return
        reason = cell.skip_reason(variant)
        if reason is not None:
            self.skipped.append(Skipped(cell.describe(variant), reason))
            return
        baseline = self._baseline(cell, variant)
        self._put(cell, variant, self._meters(cell, paired=baseline is not None), baseline)

    def _baseline(self, cell: _Cell, variant: Variant) -> Point | None:
        if cell.sweep.baseline in (None, variant.label):
            return None
        other = cell.sweep.variant(cell.sweep.baseline)
        reason = cell.skip_reason(other)
        if reason is not None:
            what = f"pairs of {cell.describe(variant)}"
            self.skipped.append(Skipped(what, f"the baseline is skipped: {reason}"))
            return None
        self._put(cell, other, (), None)
        return _point(cell, other)[0]

    def _meters(self, cell: _Cell, *, paired: bool) -> tuple[str, ...]:
        specs = [METERS.get(name) for name in cell.sweep.meters]
        return tuple(
            spec.name
            for spec in specs
            if (paired or spec.kind == "point") and (cell.first_seed or not spec.first_seed_only)
        )

    def _put(
        self, cell: _Cell, variant: Variant, meters: tuple[str, ...], baseline: Point | None
    ) -> None:
        """Adds a point after those it needs, or merges it with the equal point that is there."""
        for label in variant.needs:
            self._put(cell, cell.sweep.variant(label), (), None)
        point, axes = _point(cell, variant)
        if baseline is not None and baseline.point_id == point.point_id:
            baseline = None
        name = cell.sweep.name
        use = Use(name, variant.label, axes)
        new = PlannedPoint(point, name, cell.stage, meters, baseline, axes, (use,))
        old = self.points.setdefault(point.point_id, new)
        if old.baseline and baseline and old.baseline.point_id != baseline.point_id:
            raise InvalidFileError(
                f"{self.suite.shown_path}: {cell.describe(variant)}: paired with "
                f"'{baseline.label}' here and with '{old.baseline.label}' in sweep '{old.sweep}'; "
                "one suite pairs a point with one baseline"
            )
        self.points[point.point_id] = replace(
            old,
            stage=min(old.stage, cell.stage),
            meters=tuple(dict.fromkeys([*old.meters, *meters])),
            baseline=old.baseline or baseline,
            uses=old.uses if use in old.uses else (*old.uses, use),
        )


def _require_fit(config: ModelConfig, max_length: int) -> None:
    """Raises ValueError if the pretrained weights that a model names are of another size."""
    name = getattr(config, "pretrained", None)
    if name is None:
        return
    sizes = {
        "inputs": config.inputs,
        "depth": config.depth,
        "d_model": config.d_model,
        "n_heads": config.n_heads,
        "head_dim": config.width_of_head,
        "d_ff": config.width_of_ffn,
        "patch_size": getattr(config, "patch_size", None),
        "layer_scale": getattr(config, "layer_scale", None),
    }
    misfit = WEIGHTS.get(name).misfit(sizes, max_length)
    if misfit is not None:
        raise ValueError(misfit)


def _point(cell: _Cell, variant: Variant) -> tuple[Point, dict[str, Any]]:
    """The point of one variant in one cell, and the axes that apply to it."""
    label = variant.label
    is_new = label not in cell.drafts
    if is_new:
        cell.drafts[label] = _drafted(cell, variant)
    draft = cell.drafts[label]
    if label not in cell.made:
        source, base = (
            None if other is None else _point(cell, cell.sweep.variant(other))[0]
            for other in (variant.source, variant.base)
        )
        cell.made[label] = Point(
            model=variant.model,
            params=draft.params,
            dataset=cell.dataset,
            max_length=draft.max_length,
            train_fraction=draft.train_fraction,
            recipe=draft.recipe,
            seed=cell.seed,
            source=source,
            base=base,
            label=label,
        )
    if is_new:
        try:
            configuration_of(cell.made[label])
        except ValueError as error:
            raise _refused(cell, variant, f"model '{variant.model}': {error}") from error
    return cell.made[label], draft.axes


def _drafted(cell: _Cell, variant: Variant) -> _Drafted:
    sweep = cell.sweep
    config = MODELS.get(variant.model)
    known = config.declarable()
    own = {name: value for name, value in sweep.params.items() if name in known}
    draft = Draft(
        config=config,
        params={**own, **variant.params},
        recipe={**cell.suite.recipe, **sweep.recipe},
        max_length=sweep.max_length,
        train_fraction=sweep.train_fraction,
    )
    applied: dict[str, Any] = {}
    for name, value in cell.axes.items():
        axis = axis_called(name)
        if axis.applies(config):
            try:
                draft = axis.apply(draft, value)
            except ValueError as error:
                raise _refused(cell, variant, f"axes.{name}: {error}") from error
            applied[name] = value
    try:
        params = declared_params(config, draft.params)
        made = configuration(config, params, draft.max_length)
        _require_fit(made, draft.max_length)
        recipe = declared_recipe(draft.recipe) if sweep.trained else None
    except (TypeError, ValueError) as error:
        raise _refused(cell, variant, f"model '{variant.model}': {error}") from error
    return _Drafted(params, recipe, draft.max_length, draft.train_fraction, applied)


def _refused(cell: _Cell, variant: Variant, why: str) -> InvalidFileError:
    return InvalidFileError(f"{cell.suite.shown_path}: {cell.describe(variant)}: {why}")
