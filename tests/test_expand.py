"""From a suite's sweeps to points: product, baselines, sources, exclusions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from expanded_sweeps import DENSE, LOW, RANDOM, expanded, one

from benchmarks.errors import InvalidFileError


def test_a_sweep_s_recipe_lies_over_the_suite_s_and_under_the_axes() -> None:
    found = expanded(
        {"recipe": {"peak_lr": 1e-4}},
        {"recipe": {"peak_lr": 1e-4, "epochs": 4}, "axes": {"epochs": [5]}},
        {},
        recipe={"epochs": 2},
    )
    recipes = [dict(planned.point.recipe or {}) for planned in found.points]
    assert recipes == [
        {"epochs": 2, "peak_lr": 1e-4},
        {"epochs": 5, "peak_lr": 1e-4},
        {"epochs": 2},
    ]


BERT = {"label": "bert", "model": "bert", "params": {"pretrained": "minilm-l6"}}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"params": {"depth": 4}}, "depth = 4, but 'minilm-l6' has 6"),
        ({"axes": {"n_heads_fixed_d_model": [6]}}, "n_heads = 6, but 'minilm-l6' has 12"),
        ({"params": {"d_ff": 768}}, "d_ff = 768, but 'minilm-l6' has 1536"),
        ({"max_length": 600}, "max_length = 600, but 'minilm-l6' has 512 positions"),
    ],
)
def test_pretrained_weights_of_another_size_are_refused_in_planning(
    sweep: dict[str, Any], message: str
) -> None:
    assert expanded({"variants": [BERT]}).points[0].point.pretrained == "minilm-l6"
    with pytest.raises(InvalidFileError, match=message):
        expanded({"variants": [BERT], **sweep})


def test_product_of_seeds_data_sets_axes_and_variants() -> None:
    sweep = {
        "datasets": ["r8", "rotten-tomatoes"],
        "axes": {"depth": [1, 2], "train_fraction": [0.5, 1.0]},
        "variants": [DENSE, LOW],
    }
    assert len(expanded(sweep, seeds=[0, 1, 2]).points) == 3 * 2 * 4 * 2


def test_seeds_can_be_overridden_or_an_axis() -> None:
    assert [p.point.seed for p in expanded({"seeds": [5]}, seeds=[0, 1]).points] == [5]
    by_axis = expanded({"axes": {"seed": [7, 0]}}, seeds=[0, 1]).points
    assert [(p.point.seed, dict(p.axes)) for p in by_axis] == [(0, {}), (7, {})]


def test_stage_grows_with_the_seed_and_orders_the_points() -> None:
    points = expanded({"stage": 2}, {"params": {"depth": 1}}, seeds=[3, 4]).points
    assert [(p.stage, p.sweep, p.point.seed) for p in points] == [
        (0, "s1", 3), (1, "s1", 4), (2, "s0", 3), (3, "s0", 4),
    ]  # fmt: skip


def test_equal_points_are_planned_once_and_keep_every_use() -> None:
    main = {"meters": ["accuracy"], "stage": 1}
    more = {"meters": ["flops"], "axes": {"depth": [2, 4]}}
    expansion = expanded(main, more)
    assert len(expansion.points) == 2
    merged = next(p for p in expansion.points if p.point.params == {})
    assert merged.stage == 0
    assert set(merged.meters) == {"accuracy", "flops"}
    assert [(u.sweep, u.label, dict(u.axes)) for u in merged.uses] == [
        ("s0", "dense", {}), ("s1", "dense", {"depth": 2}),
    ]  # fmt: skip


def test_baseline_has_the_same_data_seed_and_axis_values() -> None:
    sweep = {
        "datasets": ["r8", "rotten-tomatoes"],
        "axes": {"depth": [1, 2]},
        "variants": [LOW, DENSE],
        "baseline": "dense",
        "meters": ["accuracy", "latency"],
    }
    for planned in expanded(sweep, seeds=[0, 1]).points:
        if planned.point.label == "dense":
            assert planned.baseline is None
            assert "latency" not in planned.meters
            continue
        assert planned.baseline is not None
        ours, other = planned.point.declared(), planned.baseline.declared()
        for key in ("dataset", "seed", "recipe", "max_length"):
            assert ours[key] == other[key]
        assert ours["params"].get("depth") == other["params"].get("depth")
        assert ("latency" in planned.meters) == (planned.point.seed == 0)


def test_a_point_that_first_serves_as_a_source_gets_its_baseline_too() -> None:
    expansion = expanded({"variants": [RANDOM, LOW, DENSE], "baseline": "dense"})
    low, dense = one(expansion, "low"), one(expansion, "dense")
    assert low.baseline == dense.point
    assert low.meters == ("accuracy",)


def test_one_point_cannot_have_two_baselines() -> None:
    other = {"label": "other", "model": "no-attention"}
    with pytest.raises(InvalidFileError, match=r"my\.toml: .*'other' here and with 'dense' in.*s0"):
        expanded(
            {"variants": [LOW, DENSE], "baseline": "dense"},
            {"variants": [LOW, other], "baseline": "other"},
        )


def test_a_source_is_resolved_in_the_same_cell_and_comes_first() -> None:
    sweep = {"axes": {"depth": [1, 2]}, "variants": [RANDOM, DENSE, LOW]}
    expansion = expanded(sweep, seeds=[0, 1])
    order = [p.point.point_id for p in expansion.points]
    dependent = [p.point for p in expansion.points if p.point.label == "random"]
    assert len(dependent) == 4
    for point in dependent:
        assert point.source is not None
        assert point.source.seed == point.seed
        assert point.source.recipe == point.recipe
        assert point.source.params == {**point.params, "s_max": 0.3}
        assert order.index(point.source.point_id) < order.index(point.point_id)


def test_an_excluded_source_is_prepared_but_not_measured() -> None:
    expansion = expanded({"variants": [LOW, RANDOM], "exclude": [{"variant": "low"}]})
    assert [(p.point.label, p.meters) for p in expansion.points] == [
        ("low", ()), ("random", ("accuracy",)),
    ]  # fmt: skip


def test_exclude_cuts_the_product_and_include_adds_to_it() -> None:
    sweep = {
        "axes": {"depth": [1, 2], "train_fraction": [0.5, 1.0]},
        "exclude": [{"depth": 2, "train_fraction": 0.5}],
        "include": [{"depth": 8, "variant": "dense"}],
        "variants": [DENSE, LOW],
    }
    found = [(p.point.label, p.axes.get("depth"), p.axes.get("train_fraction")) for p in
             expanded(sweep).points]  # fmt: skip
    product = [
        (label, d, f) for d, f in [(1, 0.5), (1, 1.0), (2, 1.0)] for label in ("dense", "low")
    ]
    assert found == [*product, ("dense", 8, None)]


def test_skip_gives_its_reason_and_takes_dependents_along() -> None:
    sweep = {
        "axes": {"depth": [1, 2]},
        "variants": [DENSE, LOW, RANDOM],
        "skip": [{"match": {"depth": 2, "variant": "low"}, "reason": "too slow"}],
    }
    expansion = expanded(sweep)
    assert len(expansion.points) == 4
    assert [s.reason for s in expansion.skipped] == [
        "too slow", "its source 'low' is skipped: too slow",
    ]  # fmt: skip
    assert "variant 'low'" in expansion.skipped[0].what
    assert "depth = 2" in expansion.skipped[0].what


def test_without_its_baseline_a_point_has_no_pair_meters() -> None:
    sweep = {
        "variants": [DENSE, LOW],
        "baseline": "dense",
        "meters": ["accuracy", "latency"],
        "skip": [{"match": {"variant": "dense"}, "reason": "known"}],
    }
    expansion = expanded(sweep)
    assert [(p.point.label, p.meters, p.baseline) for p in expansion.points] == [
        ("low", ("accuracy",), None)
    ]
    assert any("the baseline is skipped: known" in s.reason for s in expansion.skipped)


def test_fresh_weights_have_one_seed_and_no_recipe() -> None:
    sweep = {
        "datasets": ["random-tokens"],
        "trained": False,
        "meters": ["flops"],
        "axes": {"k_fraction": [0.25, 1.0]},
        "variants": [DENSE, {"label": "b", "model": "budgetformer"}],
    }
    points = [p.point for p in expanded(sweep, seeds=[4, 5], recipe={"epochs": 1}).points]
    assert [p.params.get("fixed_k") for p in points] == [None, 2, 8]
    assert {(p.seed, p.recipe, p.trained) for p in points} == {(0, None, False)}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"params": {"n_heads": 5}}, r"sweep 's0', variant 'dense'.*n_heads = 5 does not divide"),
        (
            {"variants": [{**LOW, "params": {"s_min": 0.5, "s_max": 0.3}}]},
            r"variant 'low'.*s_min = 0\.5 is greater than s_max = 0\.3",
        ),
        ({"axes": {"depth": [0]}}, r"depth = 0.*axes\.depth: must be a whole number.*not 0"),
        ({"axes": {"train_fraction": [2]}}, r"axes\.train_fraction: must be a number in \(0, 1\]"),
        ({"axes": {"peak_lr": ["x"]}}, r"peak_lr: .*number, not 'x'"),
        (
            {"axes": {"budget_interval": [0.3]}, "variants": [{**LOW, "params": {}}]},
            r"axes\.budget_interval: must be a pair \[s_min, s_max\], not 0\.3",
        ),
    ],
)
def test_a_combination_that_a_model_refuses_is_named(sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileError, match=rf"^my\.toml: .*{message}"):
        expanded(sweep)
