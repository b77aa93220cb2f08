"""Hashes of declared values: alike for equal values however they are written, apart for others."""

from __future__ import annotations

import random
from typing import Any

import pytest
from expanded_sweeps import shuffled
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.canonical import canonical_json, digest

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
