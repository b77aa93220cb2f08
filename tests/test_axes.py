"""Axes: what one value of each changes in a model's parameters, and to which models it applies."""

from __future__ import annotations

from typing import Any

from expanded_sweeps import DENSE, expanded, one
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planning.axes import AXES, Draft
from models.budgetformer_config import BudgetFormerConfig
from models.dense_config import DenseConfig


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
