"""Joins each input's head decisions with what is known of its complexity, by row id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.reporting.figures.decisions import columns_of, frames
from benchmarks.statistics.intervals import Interval
from benchmarks.statistics.rank import over_seeds, partial_spearman, spearman

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from benchmarks.records import Record
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

LOSS = "loss"
"""The measure made of the baseline model: its mean loss on an input."""
NAMES = {
    "length": "length",
    "rarity": "word rarity",
    "negations": "negations",
    "overlap": "word overlap of the pair",
    "bag_of_words_loss": "bag-of-words loss",
    "disagreement": "annotators' disagreement",
    LOSS: "baseline's loss",
}


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of s with one measure, over the test inputs.

    Attributes:
        variant: whose s.
        measure: name of the measure.
        whole: of s averaged over layers; mean over seeds with interval.
        at_length: the same with the ranks of length held fixed, mean over seeds; None where it
            cannot be computed, or where the measure is length.
        layers: of each layer's s, mean over seeds; None where s or the measure does not vary.
        n_inputs: inputs that have the measure.
        n_seeds: seeds.
    """

    variant: Variant
    measure: str
    whole: Interval
    at_length: float | None
    layers: tuple[float | None, ...]
    n_inputs: int
    n_seeds: int


def record_of(view: View, variant: Variant) -> Record | None:
    """The complexity record of the inputs that a variant was measured on."""
    inputs = variant.points[0].point.inputs
    for planned in view.results.expansion.points:
        if planned.point.inputs == inputs:
            record = view.record(planned, "complexity")
            if record is not None:
                return record
    return None


def measures_of(view: View, variant: Variant) -> pd.DataFrame | None:
    """The measures of the test inputs, indexed by row id, the baseline's loss among them."""
    record = record_of(view, variant)
    frame = view.results.arrays(record) if record is not None else None
    if frame is None:
        return None
    frame = frame.set_index("row_id")
    loss = baseline_loss(view, view.baseline(variant) or variant)
    return frame if loss is None else frame.join(loss)


def baseline_loss(view: View, variant: Variant) -> pd.Series[float] | None:
    """Mean loss of a variant over its seeds by row id: how hard an input is for it."""
    import pandas as pd

    found = (view.arrays(planned, "accuracy") for planned in variant.points)
    seeds = [f.set_index("row_id")[LOSS] for f in found if f is not None and LOSS in f]
    return pd.concat(seeds, axis=1).mean(axis=1).rename(LOSS) if seeds else None


def budgets(view: View, variant: Variant) -> list[pd.DataFrame]:
    """S of each layer and their mean (`s`) by row id, one table a seed."""
    tables = []
    for frame in frames(view, variant, "s"):
        table = frame.set_index("row_id")[columns_of(frame, "s")].astype("float64")
        tables.append(table.assign(s=table.mean(axis=1)))
    return tables


def correlations(view: View, variant: Variant) -> list[Correlation]:
    """With every measure that there is and that varies, as s must; empty without records."""
    measures, seeds = measures_of(view, variant), budgets(view, variant)
    if measures is None or not seeds:
        return []
    found = (_correlation(variant, measures, name, seeds) for name in measures.columns)
    return [correlation for correlation in found if correlation is not None]


def _correlation(
    variant: Variant, measures: pd.DataFrame, name: str, seeds: Sequence[pd.DataFrame]
) -> Correlation | None:
    known = measures[measures[name].notna()]
    tables = [table.loc[known.index] for table in seeds]
    whole = [rho for t in tables if (rho := spearman(t["s"], known[name])) is not None]
    if not whole:
        return None
    layers = [column for column in tables[0].columns if column != "s"]
    given = None
    if name != "length":
        partial = [partial_spearman(t["s"], known[name], known["length"]) for t in tables]
        given = _mean(partial)
    return Correlation(
        variant=variant,
        measure=name,
        whole=over_seeds(whole, len(known)),
        at_length=given,
        layers=tuple(_mean([spearman(t[c], known[name]) for t in tables]) for c in layers),
        n_inputs=len(known),
        n_seeds=len(whole),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
