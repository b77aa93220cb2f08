"""Two speeds that no suite measures: `python -m benchmarks.vision_speed`.

BiMamba by chunks against its sequential scan, and how much of what its keep ratio promises A-ViT
realises by dropping tokens. On one thread, forward only, in turns as in `attention_speed`.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from tabulate import tabulate
from torch import Tensor

from benchmarks.attention_speed import AGAIN, Target, against_dense, itself
from models.avit import AViT
from models.avit_config import AViTConfig
from models.mixers.bimamba import BiMamba
from models.mixers.ssd import ssd_chunked, ssd_scan
from models.vit import ViT
from models.vit_config import ViTConfig

Row = dict[str, object]

STATE = 128


@dataclass(frozen=True)
class Scan:
    """A sequence for one BiMamba, and what chunks should gain there over the scan."""

    tokens: int
    n_heads: int
    head_dim: int
    least: float


@dataclass(frozen=True)
class Images:
    """A Vision Transformer and the batch it gets."""

    depth: int
    d_model: int
    n_heads: int
    patch_size: int
    side: int
    batch: int


SCANS = (Scan(197, 3, 64, 2.0), Scan(1600, 3, 64, 5.0))
VIT_SMALL = Images(depth=12, d_model=384, n_heads=6, patch_size=16, side=224, batch=32)
KEEP_RATIOS = (0.8, 0.6, 0.4)
REALISED = 0.8
"""Of the promised speed-up, at least."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each of the two, and its targets, met or not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vision_speed")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each candidate (default 5)")
    rounds = parser.parse_args(arguments).rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    scans = [scan_row(size, rounds=rounds) for size in SCANS]
    kept = halting_rows(VIT_SMALL, rounds=rounds)
    for title, rows in (
        ("BiMamba, batch 1: chunks over the scan", scans),
        (f"A-ViT, batch {VIT_SMALL.batch}: speed-up over the same model that halts nothing", kept),
    ):
        print(f"\n{title}\n\n{tabulate(rows, headers='keys', floatfmt='.2f')}")  # noqa: T201
    lines = [target.line for target in targets(scans, kept)]
    print("\n" + "\n".join([*lines, itself([*scans, *kept])]))  # noqa: T201


def scan_row(size: Scan, *, rounds: int) -> Row:
    """The speed-up of the state-space core alone, and of the whole module."""
    width = size.n_heads * size.head_dim
    values = torch.randn(2, 1, size.tokens, size.n_heads, size.head_dim)
    steps = 0.1 * torch.rand(2, 1, size.tokens, size.n_heads)
    b, c = torch.randn(2, 2, 1, size.tokens, STATE).unbind(0)
    parts = (values, steps, -torch.rand(2, size.n_heads), b, c)
    core = against_dense(
        {"dense": lambda: ssd_scan(*parts), "chunks": lambda: ssd_chunked(*parts)}, rounds=rounds
    )
    chunks = BiMamba(width, size.n_heads, size.head_dim, state=STATE).eval()
    scan = copy.deepcopy(chunks)
    scan.plain = True
    x = torch.randn(1, size.tokens, width)
    whole = against_dense({"dense": lambda: scan(x), "chunks": lambda: chunks(x)}, rounds=rounds)
    return {
        "d": width,
        "N": size.tokens,
        "scan ms": core.dense * 1e3,
        "core": core.over_dense["chunks"],
        "whole module": whole.over_dense["chunks"],
        "at least": size.least,
        AGAIN: core.over_dense[AGAIN],
    }


def halting_rows(images: Images, *, rounds: int) -> list[Row]:
    """Promised and realised speed-up for each keep ratio; which patches stay is drawn at random."""
    sizes: dict[str, Any] = {
        "depth": images.depth,
        "d_model": images.d_model,
        "n_heads": images.n_heads,
        "patch_size": images.patch_size,
        "max_length": images.side,
    }
    dense = ViT(ViTConfig(**sizes)).eval()
    halting = AViT(AViTConfig(**sizes)).eval()
    halting.start_from(dense.state_dict())
    pixels = torch.randn(images.batch, dense.config.channels, images.side, images.side)
    masks = {ratio: random_masks(halting.config, images.batch, ratio) for ratio in KEEP_RATIOS}
    candidates: dict[str, Callable[[], object]] = {"dense": lambda: dense(pixels)}
    for ratio, keep in masks.items():
        candidates[str(ratio)] = partial(halting, pixels, keep=keep)
    speeds = against_dense(candidates, rounds=rounds)
    full = dense.config.macs(images.side).total
    rows: list[Row] = []
    for ratio, keep in masks.items():
        computed = [halting.config.macs(images.side, k).total for k in keep.sum(2).tolist()]
        promised = full * images.batch / sum(computed)
        realised = speeds.over_dense[str(ratio)]
        rows.append(
            {
                "patches kept": keep[:, :, 1:].float().mean().item(),
                "dense ms": speeds.dense * 1e3,
                "promised": promised,
                "realised": realised,
                "realised/promised": realised / promised,
                AGAIN: speeds.over_dense[AGAIN],
            }
        )
    return rows


def random_masks(config: AViTConfig, batch: int, ratio: float) -> Tensor:
    """(batch, depth, tokens) bool: each layer keeps the same share of those before it.

    Args:
        config: gives layers and tokens; the class token stays.
        batch: images.
        ratio: share of the patches kept, mean over layers, about.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        stays = 0.5 * (low + high)
        mean = sum(stays**layer for layer in range(config.depth)) / config.depth
        low, high = (stays, high) if mean < ratio else (low, stays)
    shares = high ** torch.arange(config.depth)
    keep = torch.rand(batch, 1, config.n_tokens) < shares[:, None]
    keep[:, :, 0] = True
    return keep


def targets(scans: Sequence[Row], kept: Sequence[Row]) -> list[Target]:
    """What the rows should reach."""
    found = [
        Target(
            f"chunks over the scan, N = {r['N']}", float(str(r["core"])), float(str(r["at least"]))
        )
        for r in scans
    ]
    worst = min(float(str(row["realised/promised"])) for row in kept)
    return [*found, Target("A-ViT, realised/promised, worst", worst, REALISED)]


if __name__ == "__main__":
    main()
