"""How much of the promised speed-up selected heads realise: `python -m benchmarks.attention_speed`.

One attention layer on one thread, forward only. The baseline is the same layer with all heads (one
joint projection, the fused kernel, the output projection). Baseline and candidates take turns, and
CPU time is compared within a turn, so that neighbours on the machine disturb all alike. The baseline
also runs against itself, which shows what differences the machine at hand resolves.
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
NARROWEST = 256
"""Smallest d_model with targets: in narrower layers calling operators costs more than their work."""


AGAIN = "dense again"
"""The baseline as its own candidate."""


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


@dataclass(frozen=True)
class Target:
    """What a figure should reach; `least` False: what it should stay under."""

    name: str
    value: float
    bound: float
    least: bool = True

    @property
    def line(self) -> str:
        """One line for the report."""
        met = self.value >= self.bound if self.least else self.value <= self.bound
        sign = ">=" if self.least else "<="
        return f"{self.name}: {self.value:.2f} ({sign} {self.bound:.2f}): {'met' if met else 'NOT MET'}"


@dataclass(frozen=True)
class Speeds:
    """How candidates compare with the dense layer.

    Attributes:
        dense: its CPU seconds, the median over turns.
        over_dense: by candidate, its speed-up over the dense layer: median of each turn's ratio.
    """

    dense: float
    over_dense: dict[str, float]


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
        "\nthe budget network, the scorer and the ranking of heads to the same selection.\n"
    )
    print("\n".join([*(t.line for t in targets(rows)), itself(rows)]))  # noqa: T201


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
    speeds = against_dense(candidates, rounds=rounds)

    rows: list[dict[str, object]] = []
    for name, k in shares.items():
        ideal = size.n_heads / k.double().mean().item()
        realised = speeds.over_dense[name]
        rows.append(
            {
                "d": size.d_model,
                "H": size.n_heads,
                "N": size.length,
                "batch": size.batch,
                "k/H": name,
                "dense ms": speeds.dense * 1e3,
                "realised": realised,
                "with controller": speeds.over_dense[f"{name} controlled"],
                "ideal": ideal,
                "realised/ideal": realised / ideal,
                AGAIN: speeds.over_dense[AGAIN],
            }
        )
    return rows


def targets(rows: Sequence[Mapping[str, object]]) -> list[Target]:
    """What the rows of `measure` should reach; narrow layers have no targets."""

    def column(name: str, *, single: bool, shares: Sequence[str]) -> list[float]:
        return [
            float(str(row[name]))
            for row in rows
            if int(str(row["d"])) >= NARROWEST
            and (row["batch"] == 1) == single
            and row["k/H"] in shares
        ]

    parts = ("1/8", "1/4", "1/2")
    return layer_targets(
        shares=column("realised/ideal", single=False, shares=parts),
        mixed=column("realised/ideal", single=False, shares=["mixed"]),
        whole=column("realised", single=False, shares=["1"]),
        single=column("realised", single=True, shares=parts),
        single_whole=column("realised", single=True, shares=["1"]),
    )


def layer_targets(
    *,
    shares: Sequence[float],
    mixed: Sequence[float],
    whole: Sequence[float],
    single: Sequence[float],
    single_whole: Sequence[float],
) -> list[Target]:
    """The targets of a layer; what was not measured has none.

    Args:
        shares: realised over ideal at k < H, many inputs with one k.
        mixed: the same where each input has its own k.
        whole: speed-up over dense at k = H, many inputs.
        single: speed-up over dense of single inputs, k < H.
        single_whole: the same at k = H.
    """
    wanted: list[tuple[str, Sequence[float], float | None, float]] = [
        ("realised/ideal", shares, 0.80, 0.65),
        ("mixed k, realised/ideal", mixed, 0.80, 0.80),
        ("k = H over dense", whole, 0.97, 0.97),
        ("batch 1, k < H over dense", single, None, 1.0),
        ("batch 1, k = H over dense", single_whole, None, 0.97),
    ]
    found: list[Target] = []
    for name, values, median, worst in wanted:
        if values and median is not None:
            found.append(Target(f"{name}, median", statistics.median(values), median))
        if values:
            found.append(Target(f"{name}, worst", min(values), worst))
    return found


def itself(rows: Sequence[Mapping[str, object]]) -> str:
    """What the dense layer reached against itself, for one line."""
    found = [float(str(row[AGAIN])) for row in rows]
    return (
        f"dense over itself: {min(found):.2f} to {max(found):.2f}; no target is sharper than that"
    )


def against_dense(candidates: Mapping[str, Callable[[], object]], *, rounds: int) -> Speeds:
    """Compares candidates with the one called "dense", which is compared with itself too."""
    times = _in_turns({**candidates, AGAIN: candidates["dense"]}, rounds=rounds, inference=True)
    dense = times.pop("dense")
    ratios = {
        name: statistics.median(a / b for a, b in zip(dense, seconds, strict=True))
        for name, seconds in times.items()
    }
    return Speeds(statistics.median(dense), ratios)


def interleaved(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int, inference: bool = True
) -> dict[str, float]:
    """Median CPU seconds of one call of each candidate; they take turns, forwards and back."""
    times = _in_turns(candidates, rounds=rounds, inference=inference)
    return {name: statistics.median(values) for name, values in times.items()}


def _in_turns(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int, inference: bool
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    with torch.inference_mode(inference):
        repeats = {name: _repeats(run) for name, run in candidates.items()}
        for turn in range(rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                times[name].append(_seconds(candidates[name], repeats[name]))
    return times


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
