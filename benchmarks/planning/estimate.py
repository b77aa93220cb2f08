"""About how long tasks take, before anything was measured: from formulas and orders of magnitude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.catalog import MODELS
from benchmarks.data.card import find_card
from benchmarks.meters.specs import BATCH_SIZES
from benchmarks.planning.declared import configuration_of
from benchmarks.training.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.data.card import Card
    from benchmarks.meters.interface import MeterSpec
    from benchmarks.planning.points import Point

# Orders of magnitude: seconds for the fixed part of a layer's training step and of its forward pass,
# and MACs a second of one core.
STEP_OVERHEAD_S = 4e-3
PASS_OVERHEAD_S = 1e-3
TRAINING_MACS_PER_S = 3.5e10
FORWARD_MACS_PER_S = 5e10
MEAN_OVER_MEDIAN = 1.2  # of the lengths of texts, roughly
PROCESS_START_S = 2.5
BATCH = 64
FIXED_S = {"training": 0.05, "complexity": 10.0, "flops": 2.0, "memory": 1.0, "carbon": 2.5}
"""By meter, what does not grow with the inputs."""
LEAST_PAIR_S = 0.6
"""A pair at one batch size in one process, where passes are short."""
PASSES_OF_A_PAIR = 14
"""Forward passes of both models together that a pair takes at least, where passes are long."""
COURSE_CHECKS, COURSE_ROWS = 10, 1000
"""How often a student is validated on its way, on how many rows at most."""


def training_seconds(point: Point) -> float:
    """One core's seconds to train a point; 0 if it needs no training of its own."""
    config_type = MODELS.get(point.model)
    if not point.trained or config_type.source == "weights":
        return 0.0
    card = find_card(point.dataset)
    rows = card.n_rows("train") * point.train_fraction
    recipe = Recipe.from_declared(point.recipe or {})
    config: Any = configuration_of(point)
    macs = 3 * config.macs(_length(point, card)).total
    if config_type.source == "teacher":
        macs *= 1 + config.stage1_share / 3  # the teacher runs beside it in stage 1
        steps = config.samples / (config.batch_size or recipe.batch_size)
        multiplying = config.samples * macs / TRAINING_MACS_PER_S
        rows = min(COURSE_ROWS, card.n_rows("validation"))
        checks = COURSE_CHECKS * rows if config.samples else 0
        return float(
            steps * STEP_OVERHEAD_S * config.depth + multiplying + forward_seconds(point, checks)
        )
    # what starts from a base looks at all rows once to choose its heads
    epochs = config.training_epochs(recipe.epochs) + (point.base is not None)
    steps = epochs * rows / recipe.batch_size
    validating = forward_seconds(point, epochs * card.n_rows("validation"))
    return float(
        steps * (STEP_OVERHEAD_S * config.depth + recipe.batch_size * macs / TRAINING_MACS_PER_S)
        + validating
    )


def forward_seconds(point: Point, n_inputs: float, batch_size: int = BATCH) -> float:
    """One core's seconds to run so many inputs through a point's model."""
    config: Any = configuration_of(point)
    macs = config.macs(_length(point, find_card(point.dataset))).total
    passes = n_inputs / batch_size
    return float(passes * PASS_OVERHEAD_S * config.depth + n_inputs * macs / FORWARD_MACS_PER_S)


def meter_seconds(meter: MeterSpec, point: Point, options: Mapping[str, Any]) -> float:
    """Seconds of one meter on one point, or of one of its processes."""
    card = find_card(point.dataset)
    config: Any = configuration_of(point)
    fixed = FIXED_S.get(meter.name, 0.5)
    if meter.kind == "pair":
        sizes = options.get("batch_sizes", BATCH_SIZES)
        return sum(
            LEAST_PAIR_S + PASSES_OF_A_PAIR * forward_seconds(point, size, size) for size in sizes
        )
    validation = card.n_rows("validation")
    inputs = {
        "accuracy": card.n_rows("test"),
        "flops": BATCH if card.is_image else card.n_rows("test"),
        "sparsity": 3 * min(options.get("n_inputs", 256), validation),
        "deletion": (config.depth + 7) * min(options.get("n_inputs", 2000), validation),
    }
    return fixed + forward_seconds(point, inputs.get(meter.name, 0))


def _length(point: Point, card: Card) -> int:
    if card.lengths is None:
        return point.max_length
    return min(point.max_length, round(MEAN_OVER_MEDIAN * card.lengths.median))
