"""Points with two sources, model fields as axes, and the suites of the studies."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from made_up import text_data

from benchmarks.errors import InvalidFileError, UsageError
from benchmarks.meters import training as training_meter
from benchmarks.meters.degenerate import degenerate_shares
from benchmarks.planning import keys
from benchmarks.planning.estimate import training_seconds
from benchmarks.planning.expand import Expansion, expand
from benchmarks.planning.plan import make_plan
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite, parse_suite
from benchmarks.running.store import RecordStore
from benchmarks.training import prepare
from benchmarks.training.artifacts import ArtifactStore
from benchmarks.training.evaluate import predict
from benchmarks.training.prepare import ensure_artifact, prepare_subject

if TYPE_CHECKING:
    pass

DENSE = {"label": "dense", "model": "dense"}
LOW = {"label": "low", "model": "budgetformer", "params": {"s_max": 0.3}}
STATIC = {"label": "static", "model": "static-heads", "source": "low", "base": "dense"}
STUDIES = ("budget", "scaling", "ablations", "controls", "paper-budgetformer")


def suite_of(sweep: dict[str, Any], **suite: Any) -> Any:
    base = {"datasets": ["r8"], "max_length": 32, "meters": ["accuracy"], "variants": [DENSE]}
    values = {"schema": 1, "title": "A test", **suite, "sweep": [{"name": "s", **base, **sweep}]}
    return parse_suite(copy.deepcopy(values), Path("my.toml"))


def expanded(sweep: dict[str, Any], **suite: Any) -> Expansion:
    return expand(suite_of(sweep, **suite))


# --- a second source -----------------------------------------------------------------------------


def test_a_point_with_a_base_carries_it_and_follows_both() -> None:
    found = [p.point for p in expanded({"variants": [STATIC, LOW, DENSE]}, seeds=[0, 1]).points]
    assert len(found) == 6
    for seed in (0, 1):
        dense, low, static = (
            next(p for p in found if (p.label, p.seed) == (label, seed))
            for label in ("dense", "low", "static")
        )
        assert (static.source, static.base) == (low, dense)
        assert static.needs == (low, dense)
        assert max(found.index(low), found.index(dense)) < found.index(static)
        assert Point.from_declared(static.declared(), "static") == static
        assert static.point_id != replace(static, base=replace(dense, seed=9)).point_id
        assert "base" not in low.declared()


def test_a_base_is_planned_with_its_suite_s_axes() -> None:
    sweep = {"variants": [DENSE, LOW, STATIC], "axes": {"depth": [1, 2]}}
    for planned in expanded(sweep).points:
        if planned.point.base is not None:
            assert planned.point.base.params == planned.point.params


def test_tasks_wait_for_both_sources_even_where_only_the_control_is_wanted(tmp_path: Path) -> None:
    suite = suite_of({"variants": [DENSE, LOW, STATIC]})
    plan = make_plan(suite, RecordStore(tmp_path), only=["static"])
    tasks = {task.point.label: task for task in plan.point_tasks}
    assert list(tasks)[-1] == "static"
    assert set(tasks["static"].needs) == {tasks["dense"].task_id, tasks["low"].task_id}
    assert not tasks["dense"].records


def test_training_time_counts_the_pass_over_the_rows_and_the_epochs_asked_for() -> None:
    tuned = {**STATIC, "label": "tuned", "params": {"finetune_epochs": 3}}
    points = expanded({"variants": [DENSE, LOW, STATIC, tuned]}).points
    seconds = {p.point.label: training_seconds(p.point) for p in points}
    assert seconds["static"] == pytest.approx(seconds["dense"] / 3)
    assert seconds["tuned"] == pytest.approx(seconds["dense"] * 4 / 3)


def test_the_artifact_s_key_holds_both_sources() -> None:
    point = next(p.point for p in expanded({"variants": [DENSE, LOW, STATIC]}).points[::-1])
    assert point.base is not None
    key = keys.artifact_key(point)
    other = replace(point, base=replace(point.base, recipe={"epochs": 1}))
    assert keys.artifact_key(other) != key
    assert keys.artifact_key(replace(point, label="another")) == key


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ([DENSE, LOW, {**STATIC, "base": "dens"}], r"base: unknown variant 'dens'.*'dense'"),
        ([DENSE, LOW, {k: v for k, v in STATIC.items() if k != "base"}], "base: model 'static-he"),
        ([DENSE, {**LOW, "base": "dense"}], "base: model 'budgetformer' starts from no other"),
        ([LOW, {**STATIC, "base": "static"}], "base: unknown variant 'static'"),
        (
            [LOW, {**STATIC, "base": "other"}, {**STATIC, "label": "other", "base": "static"}],
            "base: depends on itself: static -> other -> static",
        ),
    ],
)
def test_a_base_that_is_wrong_is_one_clear_message(variants: Any, message: str) -> None:
    with pytest.raises(InvalidFileError, match=message):
        suite_of({"variants": variants})


def test_what_its_base_skips_a_point_skips_too() -> None:
    skip = [{"match": {"variant": "dense"}, "reason": "too slow"}]
    found = expanded({"variants": [DENSE, LOW, STATIC], "skip": skip})
    assert {p.point.label for p in found.points} == {"low"}
    assert {s.reason for s in found.skipped} == {
        "too slow",
        "its base 'dense' is skipped: too slow",
    }


# --- model fields as axes ------------------------------------------------------------------------


def test_any_field_of_a_model_is_an_axis() -> None:
    axes = {"gate": ["budget", "scaled"], "entropy_weight": [0.0, 0.01], "depth": [1]}
    points = expanded({"variants": [DENSE, LOW], "axes": axes}).points
    assert [p.point.params for p in points if p.point.model == "dense"] == [{"depth": 1}]
    found = [(p.point.params.get("gate"), p.point.params.get("entropy_weight")) for p in points[1:]]
    assert found == [(None, 0.0), (None, None), ("scaled", 0.0), ("scaled", None)]
    assert list(points[1].axes) == ["depth", "gate", "entropy_weight"]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"axes": {"gat": ["budget"]}}, r"axes: unknown axis 'gat'; did you mean 'gate'"),
        ({"axes": {"vocab_size": [5]}}, "axes: unknown axis 'vocab_size'"),
        ({"axes": {"k_histogram": [[]]}}, "axes: unknown axis 'k_histogram'"),
        ({"axes": {"s_min": [0.1], "budget_interval": [[0.1, 0.2]]}}, "both set s_min"),
        ({"axes": {"s_max": [0.2]}}, "params.s_max: the axis 's_max' sets it too"),
    ],
)
def test_a_wrong_field_axis_is_one_clear_message(sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileError, match=message):
        suite_of({"variants": [DENSE, LOW], **sweep})


def test_a_value_that_the_field_cannot_hold_names_axis_and_model() -> None:
    with pytest.raises(InvalidFileError, match=r"gate: .*'budget'.*'other'"):
        expanded({"variants": [LOW], "axes": {"gate": ["other"]}})


# --- degenerate budgets --------------------------------------------------------------------------


def test_degenerate_shares_of_six_budgets_counted_by_hand() -> None:
    s = np.array([[0.05, 0.25], [0.3, 1.0], [0.9, 0.2]], np.float32)
    k = np.array([[1, 1], [1, 4], [3, 1]])
    assert degenerate_shares(s, k, 4) == pytest.approx({"one": 4 / 6, "zero": 2 / 6, "all": 1 / 6})


# --- the studies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_planned_in_full(name: str, tmp_path: Path) -> None:
    plan = make_plan(load_suite(name), RecordStore(tmp_path))
    assert plan.wanted
    assert plan.seconds(jobs=1) > 0
    place = {task.task_id: i for i, task in enumerate(plan.point_tasks)}
    for task in plan.point_tasks:
        assert all(place[need] < place[task.task_id] for need in task.needs)


def test_the_paper_s_settings_are_the_paper_s() -> None:
    points = [p.point for p in expand(load_suite("paper-budgetformer")).points]
    main = [p for p in points if p.label == "budgetformer" and p.seed == 0 and p.params["d_ff"]]
    (point,) = [p for p in main if p.dataset == "dbpedia-14"]
    assert point.params == {"depth": 4, "d_model": 768, "d_ff": 2048}
    assert point.recipe == {"epochs": 10, "batch_size": 16, "peak_lr": 2e-5}
    sets = {"dbpedia-14", "ag-news", "imdb", "snli", "yelp-review-full"}
    assert {p.dataset for p in points} == sets
    scaled = [p for p in points if p.params.get("depth") == 12 and p.params.get("n_heads") == 12]
    assert {p.label for p in scaled} == {"dense", "budgetformer"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    """An empty store; every data set is a small made-up one."""
    monkeypatch.setattr(prepare, "_load", lambda *_: text_data(96))
    # the made-up set stands for sets whose files are not here
    monkeypatch.setattr(keys, "_data_hash", lambda _: "made-up")
    return ArtifactStore(tmp_path / "artifacts")


def reduced(point: Point) -> Point:
    """The same point, narrow and with one epoch, and so are the points it needs."""
    return replace(
        point,
        params={**point.params, "d_model": 16, "d_ff": 32},
        recipe={**(point.recipe or {}), "epochs": 1, "peak_lr": 1e-3},
        source=point.source and reduced(point.source),
        base=point.base and reduced(point.base),
    )


@pytest.mark.parametrize("label", ["budgetformer", "static", "fixed"])
def test_a_point_of_the_paper_s_suite_trains_at_reduced_size(
    label: str, store: ArtifactStore
) -> None:
    points = [p.point for p in expand(load_suite("paper-budgetformer")).points]
    point = reduced(next(p for p in points if p.label == label))
    subject = prepare_subject(point, store)
    assert (subject.model.config.depth, subject.model.config.n_heads) == (4, 8)
    assert subject.artifact is not None
    predictions = predict(subject.model, subject.data.validation)
    assert np.isfinite(predictions.logits).all()
    assert predictions.k is not None
    shares = degenerate_shares(cast(Any, predictions.s), predictions.k, 8)
    assert all(0 <= value <= 1 for value in shares.values())


def test_static_heads_keeps_the_base_s_weights_until_it_is_trained_further(
    store: ArtifactStore,
) -> None:
    points = [p.point for p in expand(load_suite("controls")).points]
    static, tuned = (
        reduced(next(p for p in points if p.label == label)) for label in ("static", "static-tuned")
    )
    tuned = replace(tuned, params={**tuned.params, "finetune_epochs": 1})
    assert static.base is not None
    assert static.source is not None
    dense = ensure_artifact(static.base, store).state_dict()
    kept, further = (ensure_artifact(point, store).state_dict() for point in (static, tuned))
    assert all(torch.equal(kept[name], dense[name]) for name in dense)
    assert not torch.equal(further["head.weight"], dense["head.weight"])
    for name in set(kept) - set(dense):
        assert torch.equal(kept[name], further[name])  # chosen once, on the dense model
        if name.endswith("importance"):
            assert kept[name].norm() == pytest.approx(1.0)
            best = kept[name.replace("importance", "best")]
            assert (kept[name][best].diff() <= 0).all()
    source = ensure_artifact(static.source, store).summary
    found = ensure_artifact(static, store).summary
    for mine, wanted in zip(
        cast(Any, found.k_histogram), cast(Any, source.k_histogram), strict=True
    ):
        mean, target = (sum(k * n for k, n in enumerate(row)) / sum(row) for row in (mine, wanted))
        assert abs(mean - target) <= 1 / 40  # one input of 40
    measured = training_meter.measure(prepare_subject(static, store), {})
    values = {value.name: value.value for value in measured.values}
    assert (values["train_seconds"], values["train_steps"]) == (0, 0)


def test_a_model_without_its_base_is_refused(store: ArtifactStore) -> None:
    points = [p.point for p in expand(load_suite("controls")).points]
    point = replace(reduced(next(p for p in points if p.label == "static")), base=None)
    with pytest.raises(UsageError, match=r"starts from a trained .* `base`"):
        ensure_artifact(point, store)
