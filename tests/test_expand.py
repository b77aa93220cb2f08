from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.canonical import canonical_json, digest
from benchmarks.errors import InvalidFileError
from benchmarks.planning.axes import AXES, Draft
from benchmarks.planning.expand import Expansion, PlannedPoint, expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite, parse_suite
from models.budgetformer_config import BudgetFormerConfig
from models.dense_config import DenseConfig

DENSE = {"label": "dense", "model": "dense"}
LOW = {"label": "low", "model": "budgetformer", "params": {"s_max": 0.3}}
RANDOM = {"label": "random", "model": "random-at-test", "source": "low"}


def expanded(*sweeps: dict[str, Any], **suite: Any) -> Expansion:
    base = {"datasets": ["r8"], "max_length": 32, "meters": ["accuracy"], "variants": [DENSE]}
    values = {
        "schema": 1,
        "title": "A test",
        **suite,
        "sweep": [{"name": f"s{i}", **base, **sweep} for i, sweep in enumerate(sweeps)],
    }
    return expand(parse_suite(copy.deepcopy(values), Path("my.toml")))


def one(expansion: Expansion, label: str, **axes: Any) -> PlannedPoint:
    found = [p for p in expansion.points if p.point.label == label and dict(p.axes) == axes]
    assert len(found) == 1
    return found[0]


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


def test_an_axis_applies_only_to_models_that_have_it() -> None:
    sweep = {
        "axes": {"budget_interval": [[0.1, 0.3], [0.1, 0.9]]},
        "variants": [DENSE, {"label": "b", "model": "budgetformer"}],
        "baseline": "dense",
    }
    expansion = expanded(sweep)
    assert len(expansion.points) == 3
    assert dict(one(expansion, "dense").axes) == {}
    assert one(expansion, "b", budget_interval=[0.1, 0.3]).point.params == {"s_max": 0.3}


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


def draft(config: Any = BudgetFormerConfig, **params: Any) -> Draft:
    return Draft(config, params, {}, max_length=64, train_fraction=1.0)


def test_the_two_head_axes_differ() -> None:
    start = draft(DenseConfig, d_model=64, n_heads=8)
    same_width = AXES["n_heads_fixed_d_model"].apply(start, 16)
    same_head = AXES["n_heads_fixed_head_dim"].apply(start, 16)
    assert same_width.params == {"d_model": 64, "n_heads": 16}
    assert same_head.params == {"d_model": 128, "n_heads": 16}
    assert DenseConfig(**same_width.params).width_of_head == 4
    assert DenseConfig(**same_head.params).width_of_head == 8


@given(heads=st.integers(1, 64), share=st.floats(0, 1, exclude_min=True))
def test_a_share_of_heads_is_at_least_one_and_at_most_all(heads: int, share: float) -> None:
    k = AXES["k_fraction"].apply(draft(n_heads=heads), share).params["fixed_k"]
    assert 1 <= k <= heads
    assert k == max(1, round(share * heads))


def test_heads_are_counted_before_a_share_of_them_is_taken() -> None:
    sweep = {
        "axes": {"k_fraction": [0.5], "n_heads_fixed_d_model": [4, 16]},
        "variants": [{"label": "b", "model": "budgetformer"}],
    }
    assert [p.point.params["fixed_k"] for p in expanded(sweep).points] == [2, 8]


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


def shuffled(value: Any, order: random.Random) -> Any:
    """The same values with the keys of every table in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


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


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)  # fmt: skip


@given(value=st.dictionaries(st.text(), plain), order=st.randoms(use_true_random=False))
def test_a_hash_knows_no_order_of_keys(value: dict[str, Any], order: random.Random) -> None:
    assert digest(value) == digest(shuffled(value, order))


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@given(value=plain)
def test_a_hash_knows_no_difference_of_list_and_tuple(value: Any) -> None:
    assert canonical_json(value) == canonical_json(_tuples(value))


@pytest.mark.parametrize(("one_value", "other"), [(1, 1.0), (0.0, -0.0), ([1, 2], (1, 2.0))])
def test_equal_numbers_hash_alike(one_value: Any, other: Any) -> None:
    assert digest(one_value) == digest(other)


@pytest.mark.parametrize(("one_value", "other"), [(1, True), (1, "1"), (0.1, 0.2), ([], {})])
def test_different_values_hash_apart(one_value: Any, other: Any) -> None:
    assert digest(one_value) != digest(other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_values_without_a_canonical_text_are_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        digest(value)
