"""What each meter is, without importing what it measures with."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.meters.interface import MeterSpec, OptionKind


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_count(value: Any) -> bool:
    return _is_whole(value, 1, 2**20)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_count, value))


def _is_time(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def _is_few(value: Any) -> bool:
    return _is_whole(value, 1, 100)


def _is_seed(value: Any) -> bool:
    return _is_whole(value, 0, 2**32 - 1)


def _is_country(value: Any) -> bool:
    return isinstance(value, str) and (
        not value or (value.isascii() and value.isalpha() and len(value) == 3)
    )


def _is_share(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value <= 1


COUNT = OptionKind("a whole number from 1 to 1048576", _is_count)
COUNTS = OptionKind("a list of whole numbers from 1 to 1048576", _are_counts)
PROCESSES = OptionKind("a whole number from 1 to 100", _is_few)
SECONDS = OptionKind("a number of seconds above 0", _is_time)
SEED = OptionKind("a whole number from 0 to 4294967295", _is_seed)
SHARE = OptionKind("a number from 0 to 1", _is_share)
COUNTRY = OptionKind("an ISO 3166 code of three letters, e.g. FRA, or empty", _is_country)

BATCH_SIZES = (1, 32)
"""Those that a meter of time or memory takes where a suite names none."""

SPECS: tuple[MeterSpec, ...] = (
    MeterSpec(
        name="training",
        target="benchmarks.meters.training:measure",
        summary="what training left: validation accuracy, seconds, losses and s per epoch",
    ),
    MeterSpec(
        name="accuracy",
        target="benchmarks.meters.accuracy:measure",
        summary="accuracy and macro-F1 on the test split; prediction, s and k of each input kept",
        options={"batch_size": COUNT},
    ),
    MeterSpec(
        name="complexity",
        target="benchmarks.meters.complexity:measure",
        summary="how hard each test input is: length, rare words, negation, bag-of-words loss, ...",
        first_seed_only=True,
        of_data=True,
        libraries=("scikit-learn",),
    ),
    MeterSpec(
        name="sparsity",
        target="benchmarks.meters.sparsity:measure",
        summary="how sparse each layer's and head's attention is; which tokens are kept, of halting ones",
        options={"n_inputs": COUNT, "batch_size": COUNT},
    ),
    MeterSpec(
        name="deletion",
        target="benchmarks.meters.deletion:measure",
        summary="validation accuracy lost by deleting the attention of layers, without training",
        options={"n_inputs": COUNT, "margin": SHARE, "batch_size": COUNT},
    ),
    MeterSpec(
        name="flops",
        target="benchmarks.meters.flops:measure",
        summary="MACs by formula and by fvcore, as a distribution over the test inputs",
        needs_training=False,
        libraries=("fvcore",),
        options={"batch_size": COUNT},
    ),
    MeterSpec(
        name="memory",
        target="benchmarks.meters.memory:measure",
        summary="parameters, and peak tensor memory of one batch",
        machine_bound=True,
        first_seed_only=True,
        needs_training=False,
        options={"batch_sizes": COUNTS},
    ),
    MeterSpec(
        name="latency",
        target="benchmarks.meters.latency:Latency",
        summary="speed-up over the baseline: alternating pairs in several fresh processes",
        kind="pair",
        exclusive=True,
        machine_bound=True,
        first_seed_only=True,
        needs_training=False,
        replicates=3,
        options={
            "batch_sizes": COUNTS,
            "blocks": COUNT,
            "min_block_s": SECONDS,
            "max_pair_s": SECONDS,
            "max_run_s": SECONDS,
            "n_inputs": COUNT,
            "seed": SEED,
            "n_processes": PROCESSES,
        },
    ),
    MeterSpec(
        name="carbon",
        target="benchmarks.meters.carbon:Carbon",
        summary="energy and CO2e of inference per 1000 inputs, with the source of the figure",
        exclusive=True,
        machine_bound=True,
        first_seed_only=True,
        replicates=1,
        libraries=("codecarbon",),
        options={
            "country": COUNTRY,
            "window_s": SECONDS,
            "batch_size": COUNT,
            "n_inputs": COUNT,
            "n_processes": PROCESSES,
        },
    ),
)
