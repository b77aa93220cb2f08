"""A point's identity: known ones stay for ever, and defaults are no part of them."""

from __future__ import annotations

from expanded_sweeps import expanded

from benchmarks.planning.expand import expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite


def test_a_known_point_keeps_its_identity() -> None:
    """These values are joined across commits and machines: they may never change."""
    source = Point("budgetformer", {"s_max": 0.3}, "r8", 64, seed=1)
    point = Point(
        model="random-at-test",
        params={"depth": 4},
        dataset="r8",
        max_length=64,
        train_fraction=0.25,
        recipe={"epochs": 5},
        seed=1,
        source=source,
        label="any",
    )
    assert source.point_id == "fc5b9173fbccefd7"
    assert point.point_id == "64cd8a53021e94e7"
    assert point.group_id == "f3b764a1222496e5"
    assert Point.from_declared(point.declared()) == point


def test_the_first_point_of_quick_keeps_its_identity() -> None:
    first = expand(load_suite("quick")).points[0].point
    assert (first.model, first.dataset, first.seed) == ("dense", "r8", 0)
    assert first.point_id == "05cf5e2f3435ca92"


def test_points_hold_only_what_differs_from_the_defaults() -> None:
    sweep = {"params": {"depth": 2, "n_heads": 4, "d_model": 64}}
    (planned,) = expanded(sweep, recipe={"epochs": 3, "batch_size": 32}).points
    assert planned.point.params == {"n_heads": 4}
    assert planned.point.recipe == {"batch_size": 32}
