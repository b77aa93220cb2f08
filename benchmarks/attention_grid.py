"""The grid of `python -m benchmarks.attention_speed --grid`: how much of the ideal is realised.

For each size: one attention layer at batch 32 and batch 1, a whole model of two layers beside what
its MACs promise, and at one size the cost of training in soft mode. Targets stand under the tables,
met or not, as measured on the machine at hand.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable

import torch
from tabulate import tabulate
from torch import Tensor

from benchmarks.attention_speed import (
    AGAIN,
    NARROWEST,
    Size,
    Target,
    against_dense,
    interleaved,
    itself,
    layer_targets,
)
from models.budgetformer import BudgetAttention, BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.dense import Dense
from models.dense_config import DenseConfig
from models.encoder import Shared

SIZES = tuple(
    Size(d, heads, length, 32)
    for d, heads, length in itertools.product((256, 512), (8, 16), (128, 256, 512))
)
SMALL = (Size(64, 8, 64, 32),)
"""The size of the committed suites' models, beside the grid; no target but not to be slower."""
TRAINING = Size(256, 8, 128, 32)
PARTS = (8, 4, 2, 1)
DEPTH = 2
VOCABULARY = 1000


def report(*, rounds: int) -> None:
    """Measures everything and prints tables and targets; progress goes to stderr."""
    layers: list[dict[str, object]] = []
    singles: list[dict[str, object]] = []
    models: list[dict[str, object]] = []
    for done, size in enumerate((*SIZES, *SMALL)):
        single = Size(size.d_model, size.n_heads, size.length, 1)
        _progress(done, len(SIZES) + len(SMALL), size)
        layers += layer_rows(size, rounds=rounds)
        singles += layer_rows(single, rounds=rounds)
        models += model_rows(size, rounds=max(2, rounds // 3))
        models += model_rows(single, rounds=rounds)
    _progress(len(SIZES) + len(SMALL), len(SIZES) + len(SMALL), TRAINING)
    training = training_ratios(TRAINING, rounds=rounds)
    sections = (
        ("Attention layer, batch 32 (realised / ideal; k = H: realised)", layers),
        ("Attention layer, batch 1", singles),
        (f"Whole model, {DEPTH} layers (realised, promised by MACs)", models),
    )
    for title, rows in sections:
        print(f"\n{title}\n\n{tabulate(rows, headers='keys', floatfmt='.2f')}")  # noqa: T201
    lines = [t.line for t in targets(layers, singles, training)]
    print("\n" + "\n".join([*lines, itself([*layers, *singles, *models])]))  # noqa: T201


def layer_rows(size: Size, *, rounds: int) -> list[dict[str, object]]:
    """One row: speed-up over the dense layer by share of heads, and as a share of the ideal."""
    config = BudgetFormerConfig(d_model=size.d_model, n_heads=size.n_heads, max_length=size.length)
    layer = BudgetAttention(config, torch.Generator()).eval()
    x = torch.randn(size.batch, size.length, size.d_model)
    shared = Shared(None, torch.ones(0), "hard", plain_attention=False)
    order = torch.rand(size.batch, size.n_heads).argsort(1)
    counts = {
        _share(part): torch.full((size.batch,), max(1, size.n_heads // part)) for part in PARTS
    }
    if size.batch > 1:
        counts["mixed"] = torch.randint(1, size.n_heads + 1, (size.batch,))

    def dense() -> Tensor:
        return layer.dense(x, None, plain=False)

    def selected(k: Tensor) -> Callable[[], Tensor]:
        return lambda: layer.selected(x, order, k, shared)

    runs = {"dense": dense, **{name: selected(k) for name, k in counts.items()}}
    speeds = against_dense(runs, rounds=rounds)
    row = _named(size) | {"dense ms": speeds.dense * 1e3, AGAIN: speeds.over_dense[AGAIN]}
    for name, k in counts.items():
        realised = speeds.over_dense[name]
        row[f"k/H={name}"] = realised
        if name != "1":
            row[f"{name} of ideal"] = realised * k.double().mean().item() / size.n_heads
    return [row]


def model_rows(size: Size, *, rounds: int) -> list[dict[str, object]]:
    """One row: the whole model's speed-up over the dense one, controllers included."""
    geometry = {
        "depth": DEPTH,
        "d_model": size.d_model,
        "n_heads": size.n_heads,
        "max_length": size.length,
        "vocab_size": VOCABULARY,
    }
    dense_config = DenseConfig(**geometry)
    ids = torch.randint(0, VOCABULARY, (size.batch, size.length))
    mask = torch.zeros_like(ids, dtype=torch.bool)
    dense = Dense(dense_config).eval()
    runs: dict[str, Callable[[], object]] = {"dense": lambda: dense(ids, mask)}
    promised = {}
    for part in PARTS:
        k = max(1, size.n_heads // part)
        config = BudgetFormerConfig(fixed_k=k, **geometry)  # type: ignore[arg-type]
        model = BudgetFormer(config).eval()
        runs[_share(part)] = lambda model=model: model(ids, mask)  # type: ignore[misc]
        promised[_share(part)] = (
            dense_config.macs(size.length).total / config.macs(size.length).total
        )
    speeds = against_dense(runs, rounds=rounds)
    row = _named(size) | {"batch": size.batch, "dense ms": speeds.dense * 1e3}
    row[AGAIN] = speeds.over_dense[AGAIN]
    for name, ratio in promised.items():
        row[f"k/H={name}"] = speeds.over_dense[name]
        row[f"{name} promised"] = ratio
    return [row]


def training_ratios(size: Size, *, rounds: int) -> dict[str, float]:
    """Seconds of forward and backward in soft mode over those of the dense layer, and of models."""
    geometry = {
        "depth": DEPTH,
        "d_model": size.d_model,
        "n_heads": size.n_heads,
        "max_length": size.length,
        "vocab_size": VOCABULARY,
    }
    model = BudgetFormer(BudgetFormerConfig(**geometry)).train()  # type: ignore[arg-type]
    dense = Dense(DenseConfig(**geometry)).train()
    model.set_progress(0.5)
    layer = next(m for m in model.modules() if isinstance(m, BudgetAttention))
    x = torch.randn(size.batch, size.length, size.d_model, requires_grad=True)
    pooling = torch.full((size.batch, 1, size.length), 1.0 / size.length)
    shared = Shared(None, pooling, "soft", plain_attention=False)
    ids = torch.randint(0, VOCABULARY, (size.batch, size.length))
    mask = torch.zeros_like(ids, dtype=torch.bool)

    def step(of: BudgetFormer | Dense) -> None:
        output = of(ids, mask)
        loss = output.logits.square().sum() + sum(of.auxiliary_losses(output).values())
        _backward(loss)

    seconds = interleaved(
        {
            "dense layer": lambda: _backward(layer.dense(x, None, plain=False)),
            "layer": lambda: _backward(layer(x, shared)[0]),
            "dense model": lambda: step(dense),
            "model": lambda: step(model),
        },
        rounds=rounds,
        inference=False,
    )
    return {what: seconds[what] / seconds[f"dense {what}"] for what in ("layer", "model")}


def targets(
    layers: Iterable[dict[str, object]],
    singles: Iterable[dict[str, object]],
    training: dict[str, float],
) -> list[Target]:
    """The grid's targets; narrow layers count for none."""
    layers = [row for row in layers if int(str(row["d"])) >= NARROWEST]
    singles = [row for row in singles if int(str(row["d"])) >= NARROWEST]
    names = [_share(part) for part in PARTS if part > 1]
    return [
        *layer_targets(
            shares=_column(layers, *(f"{name} of ideal" for name in names)),
            mixed=_column(layers, "mixed of ideal"),
            whole=_column(layers, "k/H=1"),
            single=_column(singles, *(f"k/H={name}" for name in names)),
            single_whole=_column(singles, "k/H=1"),
        ),
        Target("training one layer in soft mode over dense", training["layer"], 1.2, least=False),
        Target("training a model in soft mode over dense", training["model"], 1.2, least=False),
    ]


def _column(rows: Iterable[dict[str, object]], *names: str) -> list[float]:
    return [float(str(row[name])) for row in rows for name in names]


def _named(size: Size) -> dict[str, object]:
    return {"d": size.d_model, "H": size.n_heads, "N": size.length}


def _share(part: int) -> str:
    return f"1/{part}" if part > 1 else "1"


def _progress(done: int, total: int, size: Size) -> None:
    print(  # noqa: T201
        f"{done}/{total} done; next d {size.d_model}, H {size.n_heads}, N {size.length}",
        file=sys.stderr,
        flush=True,
    )


def _backward(output: Tensor) -> None:
    torch.autograd.backward(output.sum())
