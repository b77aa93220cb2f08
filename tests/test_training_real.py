"""The recipe on the real sets: the sizes that the suites use learn what they must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.data.card import find_card
from benchmarks.data.fetch import is_available
from benchmarks.meters import accuracy
from benchmarks.planning.points import Point
from benchmarks.training.artifacts import ArtifactStore
from benchmarks.training.prepare import ensure_artifact, prepare_subject

if TYPE_CHECKING:
    from pathlib import Path

SIZE = {"depth": 2, "d_model": 64, "n_heads": 8}


def real_point(dataset: str, model: str = "dense", fraction: float = 1.0, **params: float) -> Point:
    if not is_available(find_card(dataset)):
        pytest.skip(f"data set '{dataset}' is not fetched: run `frugalbench fetch {dataset}`")
    return Point(
        model=model, params=SIZE | params, dataset=dataset, max_length=64, train_fraction=fraction
    )


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("dataset", "at_least"), [("r8", 0.93), ("rotten-tomatoes", 0.68)])
def test_the_dense_model_learns(dataset: str, at_least: float, tmp_path: Path) -> None:
    subject = prepare_subject(real_point(dataset), ArtifactStore(tmp_path))
    (found,) = [v for v in accuracy.measure(subject, {}).values if v.name == "accuracy"]
    assert found.value >= at_least


@pytest.mark.slow
@pytest.mark.data
def test_the_interval_moves_the_budget_and_a_rerun_gives_the_same_bits(tmp_path: Path) -> None:
    first, again = ArtifactStore(tmp_path / "first"), ArtifactStore(tmp_path / "again")
    low = real_point("rotten-tomatoes", "budgetformer", 0.25, s_min=0.1, s_max=0.3)
    high = real_point("rotten-tomatoes", "budgetformer", 0.25, s_min=0.7, s_max=0.9)
    s_low = ensure_artifact(low, first).record.epochs[-1].mean_s
    s_high = ensure_artifact(high, first).record.epochs[-1].mean_s
    assert s_low is not None
    assert s_high is not None
    assert s_low < 0.4 < s_high
    repeated = ensure_artifact(low, again)
    assert repeated.weights_sha256 == ensure_artifact(low, first).weights_sha256
