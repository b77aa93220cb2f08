"""What each meter is, without importing what it measures with."""

from __future__ import annotations

from benchmarks.meters.interface import MeterSpec

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
        options=("batch_size",),
    ),
    MeterSpec(
        name="flops",
        target="benchmarks.meters.flops:measure",
        summary="MACs by formula and by fvcore, as a distribution over the test inputs",
        needs_training=False,
        libraries=("fvcore",),
        options=("batch_size",),
    ),
    MeterSpec(
        name="memory",
        target="benchmarks.meters.memory:measure",
        summary="parameters, and peak tensor memory of one batch",
        machine_bound=True,
        first_seed_only=True,
        needs_training=False,
        options=("batch_sizes",),
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
        options=(
            "batch_sizes",
            "blocks",
            "min_block_s",
            "max_pair_s",
            "max_run_s",
            "n_inputs",
            "seed",
            "n_processes",
        ),
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
        options=("country", "window_s", "batch_size", "n_inputs", "n_processes"),
    ),
)
