"""What every suite that distils owes the reader about each of its teachers."""

from __future__ import annotations

from collections import defaultdict

import pytest

from benchmarks.paths import resource_dir
from benchmarks.planning.expand import Expansion, expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite

SUITES = sorted(path.stem for path in resource_dir("suites").glob("*.toml"))
PIECES_ONLY = {"smoke"}
"""Suites that show that everything runs, and compare nothing."""


def students(expansion: Expansion) -> dict[str, list[Point]]:
    """By id of their teacher."""
    found: dict[str, list[Point]] = defaultdict(list)
    for planned in expansion.points:
        point = planned.point
        if point.trained and point.source is not None and point.model.endswith("-hybrid"):
            found[point.source.point_id].append(point)
    return found


@pytest.mark.parametrize("suite", SUITES)
def test_each_teacher_s_layers_are_deleted_first(suite: str) -> None:
    expansion = expand(load_suite(suite))
    deleted = {p.point.point_id for p in expansion.points if "deletion" in p.meters}
    assert students(expansion).keys() <= deleted


@pytest.mark.parametrize("suite", [name for name in SUITES if name not in PIECES_ONLY])
def test_each_teacher_is_trained_on_for_as_many_samples_as_its_students(suite: str) -> None:
    for own in students(expand(load_suite(suite))).values():
        on, taught = (
            {
                (p.params["samples"], p.params.get("batch_size"))
                for p in own
                if bool(p.params.get("replace")) == replaced
            }
            for replaced in (False, True)
        )
        assert taught <= on


def test_sparse_teachers_have_one_that_keeps_everything_beside_them() -> None:
    for suite in ("sparsity", "sparsity-small", "paper-s2s", "paper-s2s-small"):
        ratios: dict[tuple[str, int], set[float]] = defaultdict(set)
        for planned in expand(load_suite(suite)).points:
            point = planned.point
            if point.model == "avit" and point.base is not None:
                ratios[point.base.point_id, point.params["finetune_epochs"]].add(
                    point.params["keep_ratio"]
                )
        assert ratios
        assert set(map(frozenset, ratios.values())) == {frozenset({1.0, 0.8, 0.6, 0.4})}
