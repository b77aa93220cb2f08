"""How much of the promised speed-up selected heads realise: `python -m benchmarks.attention_speed`.

One attention layer on one thread, forward only. The baseline is the same layer with all heads (one
joint projection, the fused kernel, the output projection). Baseline and candidates take turns, and
CPU time is compared, so that neighbours on the machine disturb all alike.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from tabulate import tabulate
from torch import Tensor

from models.budgetformer import BudgetAttention
from models.budgetformer_config import BudgetFormerConfig
from models.encoder import Shared

ROUND_SECONDS = 0.05
"""Each turn repeats a layer for at least about so long."""


@dataclass(frozen=True)
class Size:
    """One layer and the batch it gets."""

    d_model: int
    n_heads: int
    length: int
    batch: int


TARGET = Size(256, 16, 256, 32)
QUICK = (TARGET,)
FULL = (
    TARGET,
    Size(256, 16, 256, 1),
    Size(256, 8, 128, 32),
    Size(256, 16, 512, 32),
    Size(512, 8, 128, 32),
    Size(512, 16, 512, 8),
    Size(64, 8, 64, 32),
    Size(64, 8, 64, 1),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one table: realised speed-up, the ideal one, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attention_speed")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--quick", action="store_true", help="only d=256, H=16, N=256, batch 32")
    chosen.add_argument(
        "--grid", action="store_true", help="d, H, N in a grid, whole models, training, and targets"
    )
    parser.add_argument("--rounds", type=int, default=9, help="turns of each layer (default 9)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.grid:
        from benchmarks import attention_grid

        attention_grid.report(rounds=options.rounds)
        return
    rows = [
        row
        for size in (QUICK if options.quick else FULL)
        for row in measure(size, rounds=options.rounds)
    ]
    print(tabulate(rows, headers="keys", floatfmt=".2f"))  # noqa: T201
    print(  # noqa: T201
        "\nspeed-up over the dense layer, medians of CPU time; 'with controller' adds the pooling,"
        "\nthe budget network, the scorer and the ranking of heads to the same selection."
    )


def measure(size: Size, *, rounds: int) -> list[dict[str, object]]:
    """One row for each share of heads, and one for inputs of which each has its own k."""
    config = BudgetFormerConfig(d_model=size.d_model, n_heads=size.n_heads, max_length=size.length)
    layer = BudgetAttention(config, torch.Generator()).eval()
    x = torch.randn(size.batch, size.length, size.d_model)
    pooling = torch.full((size.batch, 1, size.length), 1.0 / size.length)
    shared = Shared(None, pooling, "hard", plain_attention=False)
    order = torch.rand(size.batch, size.n_heads).argsort(1)
    shares = {
        f"1/{part}" if part > 1 else "1": torch.full((size.batch,), max(1, size.n_heads // part))
        for part in (8, 4, 2, 1)
    }
    if size.batch > 1:
        shares["mixed"] = torch.randint(1, size.n_heads + 1, (size.batch,))

    candidates: dict[str, Callable[[], Tensor]] = {
        "dense": lambda: layer.dense(x, None, plain=False)
    }
    for name, k in shares.items():
        candidates[name] = _selected(layer, x, order, k, shared)
        candidates[f"{name} controlled"] = _controlled(layer, x, order, k, shared)
    seconds = interleaved(candidates, rounds=rounds)

    rows: list[dict[str, object]] = []
    for name, k in shares.items():
        ideal = size.n_heads / k.double().mean().item()
        realised = seconds["dense"] / seconds[name]
        rows.append(
            {
                "d": size.d_model,
                "H": size.n_heads,
                "N": size.length,
                "batch": size.batch,
                "k/H": name,
                "dense ms": seconds["dense"] * 1e3,
                "realised": realised,
                "with controller": seconds["dense"] / seconds[f"{name} controlled"],
                "ideal": ideal,
                "realised/ideal": realised / ideal,
            }
        )
    return rows


def interleaved(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int, inference: bool = True
) -> dict[str, float]:
    """Median CPU seconds of one call of each candidate; they take turns, forwards and back."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    with torch.inference_mode(inference):
        repeats = {name: _repeats(run) for name, run in candidates.items()}
        for turn in range(rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                times[name].append(_seconds(candidates[name], repeats[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def _repeats(run: Callable[[], object]) -> int:
    if _seconds(run, 1) > ROUND_SECONDS:
        return 1
    return max(1, round(ROUND_SECONDS / max(1e-6, _seconds(run, 2))))


def _selected(
    layer: BudgetAttention, x: Tensor, order: Tensor, k: Tensor, shared: Shared
) -> Callable[[], Tensor]:
    return lambda: layer.selected(x, order, k, shared)


def _controlled(
    layer: BudgetAttention, x: Tensor, order: Tensor, k: Tensor, shared: Shared
) -> Callable[[], Tensor]:
    def run() -> Tensor:
        layer.decide(x, shared)  # paid for, but the selection stays the one under test
        return layer.selected(x, order, k, shared)

    return run


if __name__ == "__main__":
    main()
