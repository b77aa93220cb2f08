"""The controls: what they take from their source, and what they leave alone."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_budgetformer import GEOMETRY

from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig
from models.config import TrainedSummary
from models.fewer_heads import FewerHeads
from models.fewer_heads_config import FewerHeadsConfig
from models.random_at_test import RandomAtTest
from models.random_at_test_config import RandomAtTestConfig
from models.random_trained import RandomTrained
from models.random_trained_config import RandomTrainedConfig

SOURCE = BudgetFormerConfig(**GEOMETRY, s_min=0.2, s_max=0.4)


def summary(**changes: Any) -> TrainedSummary:
    values: dict[str, Any] = {
        "params": dataclasses.asdict(SOURCE),
        "k_histogram": [[0, 30, 10, 0, 0], [0, 0, 10, 10, 20]],
        "mean_macs": SOURCE.macs(6, [2, 3]).total,
        "lengths": [6],
    }
    return TrainedSummary(**(values | changes))


def tokens(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    return torch.randint(1, 30, (rows, 8)), torch.zeros(rows, 8, dtype=torch.bool)


# --- random heads in training and at test --------------------------------------------------------


def test_random_trained_draws_k_from_each_layers_histogram_and_heads_evenly() -> None:
    config = RandomTrainedConfig(**GEOMETRY).resolve(summary())
    model = RandomTrained(config).eval()
    ids, mask = tokens(4000)
    with torch.no_grad():
        heads = model(ids, mask).heads
    for layer, row in enumerate(summary().k_histogram or []):
        shares = torch.bincount(heads.k[:, layer], minlength=5) / 4000
        expected = torch.tensor(row) / sum(row)
        # five standard deviations of a share of 4000 draws
        assert (shares - expected).abs().max() < 5 * (0.25 / 4000) ** 0.5
        for k in range(1, 5):
            chosen = heads.selected[heads.k[:, layer] == k, layer].float()
            if len(chosen) > 100:
                assert (chosen.mean(0) - k / 4).abs().max() < 5 * (0.25 / len(chosen)) ** 0.5
    assert not [name for name, _ in model.named_parameters() if "controller" in name]


def test_random_trained_has_one_behaviour_in_every_mode() -> None:
    config = dataclasses.replace(RandomTrainedConfig(**GEOMETRY).resolve(summary()), dropout=0.0)
    model = RandomTrained(config)
    ids, mask = tokens(5)
    found = []
    for training, mode in itertools.product((False, True), ("auto", "soft", "hard", "masked")):
        model.train(training)
        model.head_mode = mode  # type: ignore[assignment]
        model.reseed(7)
        found.append(model(ids, mask).logits)
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])
    model.reseed(8)
    assert not torch.allclose(model(ids, mask).logits, found[0])


def test_random_trained_needs_a_fitting_source() -> None:
    with pytest.raises(ValueError, match="no k_histogram yet"):
        RandomTrained(RandomTrainedConfig(**GEOMETRY))
    with pytest.raises(ValueError, match="needs a source that decides heads"):
        RandomTrainedConfig(**GEOMETRY).resolve(summary(k_histogram=None))
    with pytest.raises(ValueError, match="one row per layer"):
        RandomTrainedConfig(**GEOMETRY).resolve(summary(k_histogram=[[0, 1]]))
    with pytest.raises(ValueError, match="1 to 4 heads"):
        RandomTrainedConfig(**GEOMETRY).resolve(summary(k_histogram=[[0, 1], [1, 0]]))
    assert "k_histogram" not in RandomTrainedConfig.declarable()


# --- random heads at test only -------------------------------------------------------------------


def test_random_at_test_keeps_weights_and_k_and_changes_the_heads() -> None:
    torch.manual_seed(0)
    original = BudgetFormer(SOURCE)
    config = RandomAtTestConfig().resolve(summary())
    assert dataclasses.asdict(config) == dataclasses.asdict(SOURCE)
    control = RandomAtTest(config)
    control.load_state_dict(original.state_dict())
    ids, mask = tokens(64)
    a, b = original.eval()(ids, mask), control.eval()(ids, mask)
    # later layers see other inputs, so only the first layer's budgets are the same
    assert torch.equal(a.heads.k[:, 0], b.heads.k[:, 0])
    assert torch.equal(a.heads.scores[:, 0], b.heads.scores[:, 0])
    assert not torch.equal(a.heads.selected[:, 0], b.heads.selected[:, 0])
    assert torch.equal(b.heads.selected.sum(-1), b.heads.k)
    assert config.macs(7, [1, 2]) == SOURCE.macs(7, [1, 2])


def test_random_at_test_is_budgetformer_in_soft_mode() -> None:
    torch.manual_seed(0)
    original = BudgetFormer(SOURCE).eval()
    control = RandomAtTest(RandomAtTestConfig().resolve(summary())).eval()
    control.load_state_dict(original.state_dict())
    ids, mask = tokens(5)
    original.head_mode = control.head_mode = "soft"
    assert torch.equal(original(ids, mask).logits, control(ids, mask).logits)


# --- fewer heads ---------------------------------------------------------------------------------


def mean_macs(config: FewerHeadsConfig, heads: tuple[int, ...], lengths: list[int]) -> float:
    return sum(config.macs(n, heads).total for n in lengths) / len(lengths)


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=3, max_size=3),
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
)
def test_fewer_heads_comes_nearest_from_below(
    counts: list[list[int]], lengths: list[int], used: list[int]
) -> None:
    geometry = GEOMETRY | {"depth": 3}
    source = BudgetFormerConfig(**geometry)
    facts = TrainedSummary(
        params=dataclasses.asdict(source),
        k_histogram=[[0, *row] for row in counts],
        mean_macs=sum(source.macs(n, used).total for n in lengths) / len(lengths),
        lengths=lengths,
    )
    config = FewerHeadsConfig(**geometry).resolve(facts)
    own = mean_macs(config, config.heads_per_layer, lengths)
    affordable = [
        macs
        for heads in itertools.product(range(1, 5), repeat=3)
        if (macs := mean_macs(config, heads, lengths)) <= facts.mean_macs * (1 + 1e-12)
    ]
    assert own == pytest.approx(max(affordable), rel=1e-12)
    residual = config.mac_residual(facts)
    assert residual == pytest.approx((facts.mean_macs - own) / facts.mean_macs)
    assert residual >= -1e-12
    assert config == FewerHeadsConfig(**geometry).resolve(facts)
    wanted = [sum(k * c for k, c in enumerate(row, 1)) / max(1, sum(row)) for row in counts]
    total = sum(config.heads_per_layer)
    distance = sum((a - b) ** 2 for a, b in zip(config.heads_per_layer, wanted, strict=True))
    nearest = min(
        sum((a - b) ** 2 for a, b in zip(heads, wanted, strict=True))
        for heads in itertools.product(range(1, 5), repeat=3)
        if sum(heads) == total
    )
    assert distance == pytest.approx(nearest)


def test_fewer_heads_follows_the_source_layer_by_layer() -> None:
    facts = summary(mean_macs=SOURCE.macs(6, [1, 3]).total)
    config = FewerHeadsConfig(**GEOMETRY).resolve(facts)
    assert config.heads_per_layer == (1, 3)
    model = FewerHeads(config).eval()
    assert model(*tokens(2)).logits.shape == (2, 3)
    assert config.macs(6) == config.macs(6, [1, 3])


def test_fewer_heads_never_deletes_a_layer_and_says_so_by_a_negative_residual() -> None:
    facts = summary(mean_macs=1000.0)
    config = FewerHeadsConfig(**GEOMETRY).resolve(facts)
    assert config.heads_per_layer == (1, 1)
    assert config.mac_residual(facts) < 0
    rich = FewerHeadsConfig(**GEOMETRY).resolve(summary(mean_macs=1e9))
    assert rich.heads_per_layer == (4, 4)


def test_fewer_heads_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ValueError, match="lengths of its source"):
        FewerHeadsConfig(**GEOMETRY).resolve(summary(lengths=[]))
    with pytest.raises(ValueError, match="2 entries from 1 to 4"):
        FewerHeadsConfig(**GEOMETRY, heads_per_layer=(0, 1))
    assert "heads_per_layer" not in FewerHeadsConfig.declarable()
