"""What holds for the expansion of any sweep: order, uniqueness, sources before what needs them."""

from __future__ import annotations

import random
from typing import Any

from expanded_sweeps import DENSE, expanded, shuffled
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planning.points import Point

AXIS_VALUES: dict[str, list[Any]] = {
    "depth": [1, 2, 4],
    "n_heads_fixed_d_model": [2, 4, 8],
    "train_fraction": [0.25, 0.5, 1.0],
    "max_length": [16, 32],
    "epochs": [1, 2, 3],
    "budget_interval": [[0.1, 0.3], [0.1, 0.9]],
}


@st.composite
def sweeps(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(AXIS_VALUES)), unique=True, max_size=3))
    axes = {
        name: draw(st.lists(st.sampled_from(AXIS_VALUES[name]), min_size=1, unique_by=str))
        for name in names
    }
    variants = draw(st.permutations([DENSE, {"label": "b", "model": "budgetformer"},
                                     {"label": "r", "model": "random-at-test", "source": "b"}]))  # fmt: skip
    params = draw(st.dictionaries(st.sampled_from(["d_model", "d_ff"]), st.sampled_from([64, 128])))
    return {
        "axes": axes,
        "params": params,
        "variants": variants,
        "baseline": draw(st.sampled_from([None, "dense"])),
        "seeds": draw(st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)),
    }


@given(sweep=sweeps(), order=st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(sweep: dict[str, Any], order: random.Random) -> None:
    assert expanded(sweep).points == expanded(shuffled(sweep, order)).points


@given(first=sweeps(), second=sweeps())
def test_every_point_once_with_sources_before_and_baselines_within(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    points = expanded(first, second, seeds=[0, 1]).points
    ids = [p.point.point_id for p in points]
    assert len(ids) == len(set(ids))
    assert [p.stage for p in points] == sorted(p.stage for p in points)
    for position, planned in enumerate(points):
        if planned.point.source is not None:
            assert planned.point.source.point_id in ids[:position]
        if planned.baseline is not None:
            assert planned.baseline.point_id in ids
        assert planned.uses[0] == type(planned.uses[0])(
            planned.sweep, planned.point.label, planned.axes
        )
        assert Point.from_declared(planned.point.declared()).point_id == planned.point.point_id


@given(sweep=sweeps())
def test_a_sweep_given_twice_adds_only_uses(sweep: dict[str, Any]) -> None:
    once, twice = expanded(sweep).points, expanded(sweep, sweep).points
    assert [p.point for p in once] == [p.point for p in twice]
