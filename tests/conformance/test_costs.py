"""What every model says that it costs, against a counter that knows nothing of the formula."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from benchmarks.meters.flop_handlers import count_by_dispatch


def test_macs_are_positive_and_grow_with_length(case: Any) -> None:
    costs = [case.config.macs(length) for length in case.lengths()]
    assert len(costs) > 2
    for shorter, longer in itertools.pairwise(costs):
        assert 0 < shorter.total < longer.total
        assert 0 < shorter.elementwise < longer.elementwise


@pytest.mark.parametrize("short", [False, True])
def test_macs_are_what_a_counter_sees(case: Any, short: bool) -> None:
    model = case.model().eval()
    length = 1 if short and case.reads_texts else case.config.max_length
    batch = case.texts([length]) if case.reads_texts else case.batch(1, seed=1 + short)
    counted = count_by_dispatch(model, batch)
    formula = case.config.macs(length, counted.k).total
    assert formula == pytest.approx(counted.macs, rel=0.01)
    if case.config.target.startswith("models."):
        assert formula == counted.macs, "ours are exact"


def test_less_work_costs_less(case: Any) -> None:
    config = case.config
    output = case.run(case.model().eval(), case.batch(4))
    if output.work is None:
        pytest.skip("computes everything for every input")
    length = config.max_length
    everything = config.n_heads if output.tokens is None else config.n_tokens
    most = config.macs(length, [everything] * config.depth)
    for work in output.work.tolist():
        cost = config.macs(length, work)
        assert cost.total <= most.total
        for layer, done in enumerate(work):
            if done > 1:
                less = config.macs(length, [*work[:layer], done - 1, *work[layer + 1 :]])
                assert 0 < less.total < cost.total
                assert 0 < less.elementwise < cost.elementwise


def test_no_work_given_means_all_tokens(image_case: Any) -> None:
    config = image_case.config
    for length in image_case.lengths():
        tokens = (length // config.patch_size) ** 2 + 1
        assert config.macs(length) == config.macs(length, [tokens] * config.depth)


def test_work_must_be_given_for_every_layer(case: Any) -> None:
    config = case.config
    if case.run(case.model().eval(), case.batch(2)).work is None:
        pytest.skip("computes everything for every input")
    with pytest.raises(ValueError, match=rf"one entry per layer \({config.depth}\), not 1"):
        config.macs(config.max_length, [1])
