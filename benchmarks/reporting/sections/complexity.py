"""Whether s follows the complexity of inputs: correlations, diagnostics by difficulty, examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.data.generated import GeneratedTask
from benchmarks.errors import FrugalbenchError
from benchmarks.reporting.complexity import (
    NAMES,
    Correlation,
    baseline_loss,
    budgets,
    correlations,
    measures_of,
    record_of,
)
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    counted,
    listing,
    percent,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from benchmarks.data.card import Card
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

SHOWN = 5
"""Easiest, and hardest, inputs shown of a set of pairs."""
MOST_LEVELS = 8
FEWEST_INPUTS = 50
"""A level with fewer is not tabled: its accuracy would be noise."""

LEAD = (
    "Spearman's rank correlation over the test inputs between s (mean of layers) and each measure, which no "
    "adaptive model had a part in. From two seeds on it is the mean over seeds with a 95 % t interval over "
    'seeds; with one seed the interval is over inputs. "At equal length" holds the rank of the length '
    "fixed. A control draws its budgets by chance: what it shows is what chance shows."
)


def complexity(view: View) -> str:
    """A part for each data set whose inputs' complexity was measured; empty where the suite asks none.

    Where texts may not be shown their row ids stand.
    """
    parts = []
    for dataset, variants in view.main.items():
        if view.plans(variants, "complexity"):
            card = view.card(dataset)
            role = f" ({card.role})" if card.role else ""
            parts.append(f"### Complexity of inputs of {view.name(dataset)}{role}")
            parts.append(_of_dataset(view, card, variants, texts=view.may_show(dataset)))
    return (
        "\n\n".join(["## Does s follow the complexity of inputs?", LEAD, *parts]) if parts else ""
    )


def _of_dataset(view: View, card: Card, variants: Sequence[Variant], *, texts: bool) -> str:
    record = next((r for v in variants if (r := record_of(view, v))), None)
    if record is None:
        return f"*{MISSING}: the complexity of these inputs was not measured yet.*"
    found = [c for variant in variants for c in correlations(view, variant)]
    parts = [_correlations(found)] if found else ["*No variant with per-input s records yet.*"]
    unmeasured = record.info.get("unmeasured", {})
    if unmeasured:
        told = [f"{NAMES.get(name, name)} ({reason})" for name, reason in unmeasured.items()]
        parts.append(f"Not measured: {listing(told, by='; ')}.")
    if card.is_diagnostic:
        parts += _by_difficulty(view, card, variants)
    if card.task == "pair":
        parts.append(_examples(view, card, variants, texts=texts))
    return "\n\n".join(part for part in parts if part)


def _correlations(found: Sequence[Correlation]) -> str:
    rows = [
        [
            f"`{c.variant.label}`",
            NAMES.get(c.measure, c.measure),
            f"{_rho(c.whole.estimate)} [{_rho(c.whole.low)}, {_rho(c.whole.high)}]",
            _rho(c.at_length),
            " / ".join(_rho(layer) for layer in c.layers),
            f"{c.n_inputs:,} x {c.n_seeds}",
        ]
        for c in found
    ]
    headers = [
        "variant", "measure", "correlation with s", "at equal length", "layer by layer",
        "inputs x seeds",
    ]  # fmt: skip
    return table(headers, rows, align="llrrrr")


def _rho(value: float | None) -> str:
    # adding 0 turns a rounded -0.0 into 0.0
    return NOT_APPLICABLE if value is None else f"{round(value, 2) + 0.0:+.2f}"


def _by_difficulty(view: View, card: Card, variants: Sequence[Variant]) -> list[str]:
    """Accuracy and s at each level of a diagnostic's own difficulty.

    There is a table for each kind, and one for all dials together where there are several.
    """
    measures = measures_of(view, variants[0])
    if measures is None or not isinstance(card.source, GeneratedTask):
        return []
    dials = card.source.task.dials
    kinds: list[tuple[str, ...]] = [
        (name,) for name in measures.columns if name in dials or name not in NAMES
    ]
    if len(dials) > 1:
        kinds.append(dials)
    parts = []
    for names in kinds:
        measured = measures[list(names)]
        sizes = measured.value_counts()
        levels = sorted(sizes[sizes >= FEWEST_INPUTS].index)
        if 1 < len(levels) <= MOST_LEVELS:
            rows = [_levels(view, variant, measured, levels) for variant in variants]
            told = (
                ", ".join(f"{name} {value:g}" for name, value in zip(names, level, strict=True))
                for level in levels
            )
            parts.append(
                f"Accuracy in % (mean s) by {listing(names)}, mean over seeds, where there are at "
                f"least {FEWEST_INPUTS} inputs:\n\n" + table(["variant", *told], rows)
            )
    return parts


def _levels(
    view: View, variant: Variant, measured: pd.DataFrame, levels: Sequence[tuple[float, ...]]
) -> list[str]:
    found = (view.arrays(planned, "accuracy") for planned in variant.points)
    right = [
        (frame["label"] == frame["prediction"]).set_axis(frame["row_id"])
        for frame in found
        if frame is not None
    ]
    s = [seed["s"] for seed in budgets(view, variant)]
    cells = []
    for level in levels:
        rows = measured.index[measured.eq(list(level)).all(axis=1)]
        shares = [seed.loc[rows].mean() for seed in right]
        asked = [seed.loc[rows].mean() for seed in s]
        text = percent(float(sum(shares) / len(shares))) if shares else MISSING
        cells.append(f"{text} ({sum(asked) / len(asked):.2f})" if asked else text)
    return [f"`{variant.label}`", *cells]


def _examples(view: View, card: Card, variants: Sequence[Variant], *, texts: bool) -> str:
    """The easiest and the hardest inputs by the baseline's mean loss, with every variant's s."""
    base = next((v for v in variants if v.is_baseline), None)
    loss = baseline_loss(view, base) if base is not None else None
    deciding = [v for v in variants if not v.is_control and budgets(view, v)]
    if base is None or loss is None or not deciding:
        return ""
    ranked = loss.sort_index().sort_values(kind="stable")
    chosen = [*ranked.index[:SHOWN], *ranked.index[-SHOWN:]]
    shown = _texts(card, chosen) if texts else {}
    s = {v.label: [seed["s"] for seed in budgets(view, v)] for v in deciding}
    rows = [
        [
            "easiest" if place < SHOWN else "hardest",
            str(row),
            f"{ranked.loc[row]:.3f}",
            *(f"{sum(seed.loc[row] for seed in seeds) / len(seeds):.3f}" for seeds in s.values()),
            *([shown[row]] if shown else []),
        ]
        for place, row in enumerate(chosen)
    ]
    headers = ["", "row id", f"loss of `{base.label}` (nats)", *(f"s of `{label}`" for label in s)]
    align = "l" + "r" * (len(headers) - 1)
    if shown:
        headers, align = [*headers, "texts"], f"{align}l"
    seeds = max(len(view.records(v, "accuracy")) for v in [base, *deciding])
    note = (
        "" if shown else " Texts are left out; `frugalbench report` shows them where the data are."
    )
    return (
        f"The {SHOWN} inputs with the lowest and the {SHOWN} with the highest loss of `{base.label}`, mean "
        f"of {counted(seeds, 'seed')}.{note}\n\n" + table(headers, rows, align=align)
    )


def _texts(card: Card, row_ids: Sequence[int]) -> dict[int, str]:
    """Class and texts by row id; empty where the data are not here."""
    from benchmarks.data.fetch import data_path
    from benchmarks.data.readers import read_rows

    try:
        rows = read_rows(card, data_path(card))
    except FrugalbenchError:
        return {}
    return {
        row: f"{card.classes[rows.labels[row]]}: {' / '.join(rows.texts[row])}" for row in row_ids
    }
