"""Whether sparser layers are cheaper to replace: rank correlations over the layers of each teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.reporting.students import DELETED, students
from benchmarks.statistics.intervals import Interval
from benchmarks.statistics.rank import over_layers, rank_partial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.reporting.students import Student
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

MEASURES = {
    "concentration": "1 - normalised entropy",
    "top_mass": "mass of the top 10 % keys",
    "hoyer": "Hoyer",
    "below_uniform": "keys under 1/N",
}
"""Measures of sparsity by the names that records give them, and what readers call them."""
LEAST_SEEDS = 3
"""Fewer rhos than this have an interval that means nothing."""
QUERIES = {"all": "all queries", "class": "class token"}


@dataclass(frozen=True)
class LayerCorrelation:
    """Spearman's rho, over single layers, of sparsity and of the accuracy lost by replacing a layer.

    The paper's reading is a negative one: the sparser, the less is lost.

    Attributes:
        teacher: whose layers.
        name: what they were replaced by.
        measure, queries: of sparsity.
        held: what is held fixed: "nothing", "depth", "deletion" (the loss of the student from which
            that layer's attention was deleted) or "both".
        rho: mean over seeds; Student's t interval from two seeds on, else of no width.
        n_layers: layers that each seed has.
    """

    teacher: Variant
    name: str
    measure: str
    queries: str
    held: str
    rho: Interval
    n_layers: int


def correlations(view: View) -> list[LayerCorrelation]:
    """One for each teacher, mixer, measure, kind of queries and thing held fixed, where it exists."""
    found = []
    singles = [s for s in students(view) if len(s.replaced) == 1]
    for group in dict.fromkeys(s.teacher.group_id for s in singles):
        own = [s for s in singles if s.teacher.group_id == group]
        teacher = own[0].teacher
        for name, samples in dict.fromkeys((s.name, s.samples) for s in own if s.mixer != DELETED):
            alike = [s for s in own if s.samples == samples]
            deleted = _lost(view, [s for s in alike if s.mixer == DELETED])
            lost = _lost(view, [s for s in alike if s.name == name])
            for measure in MEASURES:
                for queries in QUERIES:
                    sparse = _sparsity(view, teacher, measure, queries)
                    found += _held(teacher, name, measure, queries, sparse, lost, deleted)
    return found


def reading(correlations: Sequence[LayerCorrelation]) -> str:
    """What one mixer's correlations with one measure say of the paper's reading, in words.

    Args:
        correlations: with nothing and with something held fixed.
    """
    plain = [c.rho for c in correlations if c.held == "nothing"]
    held = [c.rho for c in correlations if c.held != "nothing"]
    if not plain or plain[0].method == "single":
        return "one seed decides nothing"
    if plain[0].n < LEAST_SEEDS or plain[0].low == plain[0].high:
        # over few layers rho takes few values, so that seeds may agree by accident
        return "so few seeds, or equal ones, decide nothing"
    if plain[0].low > 0:
        return "the opposite is shown: sparser layers cost more"
    if plain[0].high >= 0:
        return "not shown: the interval of rho holds 0"
    if not held:
        return "shown, but nothing could be held fixed"
    if all(rho.high < 0 for rho in held):
        return "shown, and it survives whatever is held fixed"
    return "shown with nothing held fixed, but it does not survive all that is held fixed"


def _held(
    teacher: Variant,
    name: str,
    measure: str,
    queries: str,
    sparse: dict[int, dict[int, float]],
    lost: dict[int, dict[int, float]],
    deleted: dict[int, dict[int, float]],
) -> list[LayerCorrelation]:
    rhos: dict[str, list[float]] = {}
    n_layers = 0
    for seed, by_layer in lost.items():
        layers = sorted(set(by_layer) & set(sparse.get(seed, {})))
        x = [sparse[seed][layer] for layer in layers] if layers else []
        y = [by_layer[layer] for layer in layers]
        n_layers = max(n_layers, len(layers))
        fixed: dict[str, list[list[float]]] = {"nothing": [], "depth": [list(map(float, layers))]}
        gone = deleted.get(seed, {})
        if layers and set(layers) <= set(gone):
            fixed["deletion"] = [[gone[layer] for layer in layers]]
            fixed["both"] = fixed["depth"] + fixed["deletion"]
        for held, given in fixed.items():
            rho = rank_partial(x, y, given)
            if rho is not None:
                rhos.setdefault(held, []).append(rho)
    return [
        LayerCorrelation(
            teacher, name, measure, queries, held, _over_seeds(values, n_layers), n_layers
        )
        for held, values in rhos.items()
        # where all seeds but one leave nothing to correlate, that one says nothing of seeds
        if len(values) > 1 or len(lost) == 1
    ]


def _over_seeds(rhos: Sequence[float], n_layers: int) -> Interval:
    if len(rhos) == 1:
        return Interval(rhos[0], rhos[0], rhos[0], "single", 0.0, 1)
    return over_layers(rhos, n_layers)


def _lost(view: View, own: Sequence[Student]) -> dict[int, dict[int, float]]:
    """Accuracy lost, by seed and layer."""
    found: dict[int, dict[int, float]] = {}
    for student in own:
        before = view.values(student.teacher, "accuracy", "accuracy")
        after = view.values(student.variant, "accuracy", "accuracy")
        for seed in before.keys() & after.keys():
            by_layer = found.setdefault(seed, {})
            by_layer[student.replaced[0]] = before[seed].value - after[seed].value
    return found


def _sparsity(
    view: View, teacher: Variant, measure: str, queries: str
) -> dict[int, dict[int, float]]:
    """By seed and layer."""
    wanted = {"measure": measure, "queries": queries}
    return {
        record.seed: {
            int(value.context["layer"]): value.value
            for value in record.values
            if value.name == "sparsity"
            and "layer" in value.context
            and {k: value.context[k] for k in ("measure", "queries")} == wanted
        }
        for record in view.records(teacher, "sparsity")
    }
