"""From a point to a subject: built, trained once, summarised on validation, loaded again."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from made_up import text_data

from benchmarks.canonical import digest
from benchmarks.catalog import MODELS
from benchmarks.errors import StorageError, UsageError
from benchmarks.meters import training as training_meter
from benchmarks.planning.points import Point
from benchmarks.training import prepare
from benchmarks.training.artifacts import ArtifactStore
from benchmarks.training.build import build_config, build_model
from benchmarks.training.evaluate import predict
from benchmarks.training.loop import train
from benchmarks.training.prepare import ensure_artifact, prepare_subject
from models.config import EncoderConfig

if TYPE_CHECKING:
    from pathlib import Path


SIZE = {"depth": 2, "d_model": 16, "n_heads": 4}
NAMES = [name for name in MODELS.names() if MODELS.get(name).inputs == "text"]


@pytest.fixture(autouse=True)
def _made_up_data(monkeypatch: pytest.MonkeyPatch) -> None:
    data = text_data(120)
    monkeypatch.setattr(prepare, "_load", lambda *_: data)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def make_point(model: str, seed: int = 0, **params: Any) -> Point:
    """A point of the made-up data; a dependent model depends on a BudgetFormer or has a teacher."""
    config = MODELS.get(model)
    bert = model.startswith("bert-")
    source = None
    if config.source == "teacher":
        source = make_point("bert", seed)
    elif config.source != "none":
        source = make_point("bert-budgetformer" if bert else "budgetformer", seed)
    base = None if config.base == "none" else make_point("bert" if bert else "dense", seed)
    return Point(
        model=model,
        params={k: v for k, v in SIZE.items() if k in MODELS.get(model).declarable()} | params,
        dataset="r8",
        max_length=8,
        recipe={"epochs": 1, "batch_size": 16},
        seed=seed,
        source=source,
        base=base,
        label=f"my {model}",
    )


@pytest.mark.parametrize("model", NAMES)
def test_same_seed_same_bits_and_another_seed_others(model: str, tmp_path: Path) -> None:
    first = ensure_artifact(make_point(model), ArtifactStore(tmp_path / "first"))
    other = ensure_artifact(make_point(model, seed=1), ArtifactStore(tmp_path / "second"))
    torch.randn(17)
    second = ensure_artifact(make_point(model), ArtifactStore(tmp_path / "second"))
    assert first.weights_sha256 == second.weights_sha256
    assert first.key == second.key
    assert first.summary == second.summary
    assert first.validation == second.validation
    assert first.weights_sha256 != other.weights_sha256


@pytest.mark.parametrize("model", NAMES)
def test_a_loaded_subject_repeats_what_the_trained_model_said(
    model: str, store: ArtifactStore
) -> None:
    point = make_point(model)
    artifact = ensure_artifact(point, store)
    subject = prepare_subject(point, store)
    assert not subject.model.training
    assert subject.artifact == artifact
    validation = subject.data.validation
    hard = predict(subject.model, validation)
    if model.endswith("random-at-test"):  # the scores in the artifact are its source's
        assert artifact == ensure_artifact(cast(Point, point.source), store)
        return
    scores = artifact.validation
    assert np.mean(hard.predicted == validation.labels) == scores.accuracy
    soft = predict(subject.model, validation, head_mode="soft")
    if scores.soft_accuracy is None:
        assert hard.k is None
    else:
        assert np.mean(soft.predicted == validation.labels) == scores.soft_accuracy
    assert digest(asdict(subject.model.config)) == digest(artifact.summary.params)


def test_nothing_is_trained_twice(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []

    def counting(model: Any, *args: Any) -> Any:
        trained.append(type(model).__name__)
        return train(model, *args)

    monkeypatch.setattr(prepare, "train", counting)
    for model in ("random-at-test", "random-trained", "budgetformer", "random-trained"):
        ensure_artifact(make_point(model), store)
    assert trained == ["BudgetFormer", "RandomTrained"]


def test_the_summary_is_read_on_validation(store: ArtifactStore) -> None:
    summary = ensure_artifact(make_point("budgetformer"), store).summary
    subject = prepare_subject(make_point("budgetformer"), store)
    validation = subject.data.validation
    assert summary.lengths == validation.lengths.tolist()
    k = predict(subject.model, validation).k
    assert k is not None
    assert summary.k_histogram == [
        [int((k[:, layer] == heads).sum()) for heads in range(5)] for layer in range(2)
    ]
    macs = [
        subject.model.config.macs(int(length), row.tolist()).total
        for length, row in zip(validation.lengths, k, strict=True)
    ]
    assert summary.mean_macs == pytest.approx(np.mean(macs))


def test_a_dense_model_has_macs_and_no_histogram(store: ArtifactStore) -> None:
    summary = ensure_artifact(make_point("dense"), store).summary
    config = prepare_subject(make_point("dense"), store).model.config
    assert summary.k_histogram is None
    lengths = text_data(120).validation.lengths
    assert summary.mean_macs == pytest.approx(np.mean([config.macs(n).total for n in lengths]))


def test_dependent_models_take_over_what_their_source_says(store: ArtifactStore) -> None:
    source = ensure_artifact(make_point("budgetformer"), store)
    random = prepare_subject(make_point("random-trained"), store).model.config
    histogram = [list(row) for row in cast(Any, random).k_histogram]
    assert histogram == source.summary.k_histogram
    fewer = prepare_subject(make_point("fewer-heads"), store)
    assert len(cast(Any, fewer.model.config).heads_per_layer) == 2
    at_test = prepare_subject(make_point("random-at-test"), store).model.state_dict()
    weights = source.state_dict()
    assert at_test.keys() == weights.keys()
    assert all(torch.equal(at_test[name], weights[name]) for name in weights)


def test_an_untrained_point_has_fresh_weights_by_its_seed(store: ArtifactStore) -> None:
    point = replace(make_point("dense"), recipe=None)
    subjects = [prepare_subject(p, store) for p in (point, point, replace(point, seed=1))]
    first, same, other = (subject.model.state_dict() for subject in subjects)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["token.weight"], other["token.weight"])
    assert subjects[0].artifact is None
    assert not store.root.exists()
    with pytest.raises(UsageError, match="fresh weights"):
        ensure_artifact(point, store)


def test_weights_that_do_not_fit_are_named(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_artifact(make_point("dense"), store)
    wide = make_point("dense", d_ff=8)
    key = next(path.parent.name for path in store.root.glob("*/*/artifact.json"))
    monkeypatch.setattr(prepare, "artifact_key", lambda _: key)
    with pytest.raises(StorageError, match=f"{key} do not fit the model 'dense'"):
        prepare_subject(wide, store)


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        ("budgetformer", {"s_min": 0.5, "s_max": 0.2}, "s_min = 0.5 is greater than s_max = 0.2"),
        ("dense", {"n_heads": 3}, "n_heads = 3 does not divide d_model = 16"),
        ("budgetformer", {"smin": 0.5}, "unknown parameter 'smin'; did you mean 's_min'"),
        ("dense", {"vocab_size": 5}, "unknown parameter 'vocab_size'"),
    ],
)
def test_impossible_parameters_name_model_and_point(
    model: str, params: dict[str, Any], message: str, store: ArtifactStore
) -> None:
    with pytest.raises(UsageError) as caught:
        ensure_artifact(make_point(model, **params), store)
    assert message in str(caught.value)
    assert f"model '{model}', point 'my {model}'" in str(caught.value)


def test_a_dependent_point_without_its_source_is_refused(store: ArtifactStore) -> None:
    point = replace(make_point("fewer-heads"), source=None)
    with pytest.raises(UsageError, match="'fewer-heads' takes its macs from a trained source"):
        ensure_artifact(point, store)
    with pytest.raises(UsageError, match="takes its macs from a trained source"):
        build_config(point, text_data(120))


def test_a_source_that_does_not_fit_names_model_and_point(store: ArtifactStore) -> None:
    point = make_point("random-trained", depth=3)
    with pytest.raises(UsageError, match=r"point 'my random-trained': .*depth"):
        ensure_artifact(point, store)


def test_the_data_set_decides_what_a_suite_may_not() -> None:
    config = build_config(make_point("dense"), text_data(120))
    found = (config.vocab_size, config.n_classes, config.max_length, config.n_segments)
    assert found == (24, 3, 8, 1)


def test_building_leaves_the_processes_random_state_alone() -> None:
    config: EncoderConfig = build_config(make_point("dense"), text_data(120))
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    build_model(config, 0)
    assert torch.equal(torch.randn(3), expected)


def test_the_training_meter_reads_the_artifact(store: ArtifactStore) -> None:
    subject = prepare_subject(make_point("budgetformer"), store)
    measurement = training_meter.measure(subject, {})
    assert subject.artifact is not None
    scores, epoch = subject.artifact.validation, subject.artifact.record.epochs[0]
    values = {value.name: value for value in measurement.values}
    assert values["validation_accuracy"].value == scores.accuracy
    assert values["validation_accuracy"].method == "wilson"
    assert values["validation_soft_accuracy"].value == scores.soft_accuracy
    assert values["validation_macro_f1"].value == scores.macro_f1
    assert values["train_seconds"].value == epoch.seconds
    assert values["train_steps"].value == 8
    assert measurement.data is not None
    assert (measurement.data.split, measurement.data.n) == ("validation", 40)
    series = measurement.series
    assert series["mean_s"] == [epoch.mean_s]
    assert series["loss_entropy"] == [epoch.losses["entropy"]]
    assert series["schedule_tau"] == [0.5]
    assert {len(entries) for entries in series.values()} == {1}


def test_the_training_meter_omits_what_a_model_lacks(store: ArtifactStore) -> None:
    measurement = training_meter.measure(prepare_subject(make_point("dense"), store), {})
    assert "validation_soft_accuracy" not in {value.name for value in measurement.values}
    assert "mean_s" not in measurement.series
    fresh = prepare_subject(replace(make_point("dense"), recipe=None), store)
    with pytest.raises(UsageError, match="was not trained"):
        training_meter.measure(fresh, {})


def test_borrowed_weights_are_said_to_be_borrowed(store: ArtifactStore) -> None:
    point = make_point("random-at-test")
    measurement = training_meter.measure(prepare_subject(point, store), {})
    assert [(v.name, v.value) for v in measurement.values] == [("train_seconds", 0.0)]
    assert measurement.info["weights_of"] == cast(Point, point.source).point_id
