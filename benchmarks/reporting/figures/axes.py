"""Which axis of a sweep a figure runs along, and what the lines are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

TITLES = {
    "depth": "depth (layers)",
    "d_model": "width d_model",
    "n_heads_fixed_d_model": "heads per layer H (d_model fixed)",
    "n_heads_fixed_head_dim": "heads per layer H (head_dim fixed)",
    "train_fraction": "share of the training split",
    "max_length": "tokens kept of a text, or side of an image in pixels",
    "k_fraction": "k/H",
    "peak_lr": "peak learning rate",
    "epochs": "epochs",
    "budget_interval": "[s_min, s_max]",
}
"""What an axis is called in a figure."""

SHORT = {
    "train_fraction": "train share",
    "n_heads_fixed_d_model": "H",
    "n_heads_fixed_head_dim": "H",
    "max_length": "tokens",
}


def numeric(variants: Iterable[Variant]) -> list[str]:
    """Axes with numbers on them that take at least two values, in the sweep's order."""
    values: dict[str, set[Any]] = defaultdict(set)
    for variant in variants:
        for name, value in variant.axes.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                values[name].add(value)
    return [name for name, found in values.items() if len(found) > 1]


def lines(
    view: View, variants: Sequence[Variant], along: str
) -> dict[tuple[str, str], list[tuple[float, Variant]]]:
    """Variants that differ in the axis `along` alone, as (x, variant) in order of x.

    Returns:
        By (label, the other axes as text).
    """
    others = sorted({name for v in variants for name in v.axes} - {along})
    found: dict[tuple[str, str], list[tuple[float, Variant]]] = defaultdict(list)
    for variant in variants:
        x = variant.axes.get(along)
        if x is None:
            continue
        rest = ", ".join(
            text for name in others if (text := _setting(view, variant, name)) is not None
        )
        found[variant.label, rest].append((float(x), variant))
    return {key: sorted(pairs, key=lambda pair: pair[0]) for key, pairs in found.items()}


def _of_all(share: float) -> str:
    """0.25 -> "H/4"; a share that is no such part is written out."""
    if share == 1:
        return "H"
    return f"H/{round(1 / share)}" if round(1 / share) * share == 1 else f"{share:g} H"


def _setting(view: View, variant: Variant, name: str) -> str | None:
    value = variant.axes.get(name)
    if value is None:
        return None
    if name == "k_fraction":
        return f"k = {_of_all(value)}" if view.config(variant).get("fixed_k") else None
    return f"{SHORT.get(name, name)} {value:g}" if isinstance(value, (int, float)) else f"{value}"
