"""Per-input head decisions (s and k of each layer) out of the accuracy records' arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

Decision = Literal["s", "k"]


@dataclass(frozen=True)
class Layers:
    """One decision over all inputs of all seeds, a column per layer."""

    columns: list[pd.Series[float]]
    n_seeds: int


def columns_of(frame: pd.DataFrame, what: Decision) -> list[str]:
    """`s_0`, `s_1`, ... in the order of the layers."""
    names = [c for c in frame.columns if c.startswith(f"{what}_") and c[2:].isdigit()]
    return sorted(names, key=lambda name: int(name[2:]))


def frames(view: View, variant: Variant, what: Decision) -> list[pd.DataFrame]:
    """The arrays of each seed that hold the decision."""
    found = (view.arrays(planned, "accuracy") for planned in variant.points)
    return [frame for frame in found if frame is not None and columns_of(frame, what)]


def per_layer(view: View, variant: Variant, what: Decision) -> Layers:
    """The decision of every layer, all seeds one after the other."""
    import pandas as pd

    seeds = frames(view, variant, what)
    together = pd.concat(seeds, ignore_index=True)
    return Layers([together[name] for name in columns_of(together, what)], len(seeds))


def shown_by_dataset(view: View, what: Decision) -> dict[str, list[Variant]]:
    """Variants of the main sweeps whose decisions are there, by data set.

    Controls are left out: they take their number of heads from another model.
    """
    found = {
        dataset: [v for v in variants if not v.is_control and frames(view, v, what)]
        for dataset, variants in view.main.items()
    }
    return {dataset: variants for dataset, variants in found.items() if variants}
