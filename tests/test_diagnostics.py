"""The generated tasks: their labels against independent evaluators, their bytes, their cards."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.catalog import DATASETS
from benchmarks.data.card import Card, load_card
from benchmarks.data.diagnostics.make import Split, make
from benchmarks.data.diagnostics.mqar import recall
from benchmarks.data.diagnostics.stream import Stream
from benchmarks.data.generated import GeneratedTask, ListOps, Recall
from benchmarks.data.identity import data_hash
from benchmarks.data.load import EncodedSplit, load_card_text, load_text
from benchmarks.errors import DataError, InvalidFileError
from benchmarks.paths import resource_dir
from benchmarks.planning.points import Point

LISTOPS = GeneratedTask.model_validate(
    {
        "kind": "generated-task",
        "rows": {"train": 300, "validation": 100, "test": 100},
        "task": {
            "name": "listops",
            "modulus": 4,
            "depths": [2, 3],
            "digits": [6, 8],
            "most_arguments": 4,
        },
    }
)
MQAR = GeneratedTask.model_validate(
    {
        "kind": "generated-task",
        "rows": {"train": 300, "validation": 100, "test": 100},
        "task": {"name": "mqar", "pairs": [8, 16], "queries": 3, "keys": 16, "values": 4},
    }
)


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 4]), st.integers(2, 5), st.integers(1, 3))
def test_mqar_answer_is_what_most_queried_keys_have(
    seed: int, values: int, per_value: int, queries: int
) -> None:
    pairs = values * per_value
    made = recall(
        Stream(f"test {seed}"), pairs=pairs, queries=queries, n_keys=pairs + 3, n_values=values
    )
    assert len(set(made.keys)) == pairs
    assert set(Counter(made.values).values()) == {per_value}
    assert len(set(made.queries)) == queries
    table = dict(zip(made.keys, made.values, strict=True))
    asked = Counter(table[key] for key in made.queries)
    (first, most), *rest = asked.most_common()
    assert first == made.answer
    assert all(most > other for _, other in rest)


@settings(max_examples=20)
@given(st.integers(1, 50), st.text(max_size=5))
def test_a_stream_stays_in_range_and_repeats_itself(n: int, name: str) -> None:
    stream, again = Stream(name), Stream(name)
    found = [stream.below(n) for _ in range(300)]
    assert found == [again.below(n) for _ in range(300)]
    assert set(found) <= set(range(n))
    assert sorted(stream.shuffled(range(n))) == list(range(n))


def test_a_stream_is_even() -> None:
    stream = Stream("even")
    counts = Counter(stream.below(3) for _ in range(3000))
    assert all(abs(count - 1000) < 120 for count in counts.values())
    orders = Counter(tuple(stream.shuffled("abc")) for _ in range(1200))
    assert len(orders) == 6
    assert all(abs(count - 200) < 60 for count in orders.values())


@pytest.mark.parametrize(
    ("source", "sha256"),
    [
        (LISTOPS, "f99046be1fc2894ab20c333f6e6ededf0592eb6d9f14f3ea7121af8fe70ad302"),
        (MQAR, "a98ade0d47be49b55c8a33a10c55dcb5806981697d8bc6983429480ff18bd293"),
    ],
    ids=["listops", "mqar"],
)
def test_bytes_are_pinned(source: GeneratedTask, sha256: str) -> None:
    # if they have to change, `identity.GENERATORS` moves with them
    made = make("pinned", source)
    content = b"".join(
        part.astype("<i8").tobytes()
        for split in ("train", "validation", "test")
        for part in (made[split].tokens, made[split].offsets, made[split].labels)
    )
    assert hashlib.sha256(content).hexdigest() == sha256


@pytest.mark.parametrize("source", [LISTOPS, MQAR], ids=["listops", "mqar"])
def test_no_test_input_is_trained_on(source: GeneratedTask) -> None:
    made = make("apart", source)
    rows = {
        split: [tuple(row) for row in np.split(part.tokens, part.offsets[1:-1])]
        for split, part in made.items()
    }
    held_out = rows["test"] + rows["validation"]
    assert len(set(held_out)) == len(held_out)
    assert not set(held_out) & set(rows["train"])
    assert all(len(part.labels) == len(rows[split]) for split, part in made.items())


def test_too_few_different_inputs_are_an_error() -> None:
    # three operators over two sums of two bits each: 48 expressions
    task = {**LISTOPS.task.model_dump(), "modulus": 2, "depths": [2], "digits": [4]}
    few = LISTOPS.model_copy(update={"task": ListOps.model_validate(task)})
    rows = few.rows.model_copy(update={"test": 500})
    with pytest.raises(DataError, match="too few different inputs"):
        make("few", few.model_copy(update={"rows": rows}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pairs": [6]}, "6 pairs"),
        ({"keys": 8}, "16 pairs have as many different keys"),
        ({"queries": 4, "pairs": [4]}, "there are too few"),
    ],
)
def test_mqar_that_cannot_be_made_is_refused(changed: dict[str, Any], message: str) -> None:
    task = {"name": "mqar", "pairs": [8, 16], "queries": 3, "keys": 16, "values": 4}
    with pytest.raises(ValueError, match=message):
        Recall.model_validate({**task, **changed})


@pytest.mark.parametrize("name", ["listops", "mqar"])
def test_cards_load_and_are_called_diagnostic(name: str) -> None:
    card = DATASETS.get(name)
    assert card.role == "diagnostic"
    assert card.max_length is not None
    data = load_text(name, max_length=card.max_length)
    assert data.note == "diagnostic"
    test = data.test()
    parts: dict[Split, EncodedSplit] = {
        "train": data.train,
        "validation": data.validation,
        "test": test,
    }
    for split, part in parts.items():
        assert len(part) == card.n_rows(split)
        assert part.tokens.max() < data.vocab_size
        assert part.tokens.min() >= 2
        assert set(part.labels.tolist()) == set(range(len(card.classes)))
    ids = np.concatenate([data.train.row_ids, data.validation.row_ids, test.row_ids])
    assert np.array_equal(ids, np.arange(len(ids)))


def test_every_generated_task_is_a_diagnostic_and_nothing_else_is() -> None:
    cards = [DATASETS.get(name) for name in DATASETS.names()]
    for card in cards:
        assert card.is_diagnostic == (card.source.kind == "generated-task")
        assert card.is_diagnostic == card.role.startswith("diagnostic")
        assert not (card.is_diagnostic and card.stand_in_for)


def test_an_input_is_never_cut() -> None:
    with pytest.raises(DataError, match="max_length must be at least"):
        load_text("listops", max_length=16)
    with pytest.raises(DataError, match="tokens of its own"):
        load_card_text(DATASETS.get("mqar"), max_length=64, vocabulary="minilm-l3")


def test_a_training_fraction_is_nested() -> None:
    half = load_text("mqar", max_length=64, train_fraction=0.5).train
    tenth = load_text("mqar", max_length=64, train_fraction=0.1).train
    assert set(tenth.row_ids.tolist()) < set(half.row_ids.tolist())


def test_the_hash_holds_task_and_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    before = data_hash("mqar", max_length=64)
    assert before != data_hash("listops", max_length=64)
    monkeypatch.setitem(__import__("benchmarks.data.identity").data.identity.GENERATORS, "mqar", 2)
    assert data_hash("mqar", max_length=64) != before


def _card(tmp_path: Path, old: str, new: str) -> Card:
    text = (resource_dir("datasets") / "listops.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "listops.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return load_card(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"2", "3"]', '"2"]', "classes: task 'listops' has 4, not 3"),
        ('name = "listops", modulus', 'name = "lists", modulus', "source"),
        ('task = "single"', 'task = "pair"', "generated data are single texts"),
    ],
)
def test_a_wrong_card_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidFileError, match=message):
        _card(tmp_path, old, new)


def test_no_sum_over_single_tokens_says_anything_of_an_mqar_answer() -> None:
    """Each (position, token) is as frequent under every answer, up to chance: chi-square."""
    from scipy import stats

    source = replace_rows(MQAR, 4000)
    made = make("even", source)["train"]
    rows = [row for row in np.split(made.tokens, made.offsets[1:-1]) if len(row) == 12]
    labels = made.labels[np.diff(made.offsets) == 12]
    tokens = np.stack(rows)
    p_values = []
    for position in (0, 3, 7, 9, 11):
        value = tokens[:, position] % 4 if position < 8 else tokens[:, position]
        table = np.array(
            [[np.sum((value == v) & (labels == c)) for v in np.unique(value)] for c in range(4)]
        )
        p_values.append(stats.chi2_contingency(table).pvalue)
    assert min(p_values) > 0.001


def replace_rows(source: GeneratedTask, train: int) -> GeneratedTask:
    return source.model_copy(update={"rows": source.rows.model_copy(update={"train": train})})


@pytest.mark.slow
def test_attention_learns_to_recall_and_without_it_nothing_does() -> None:
    from benchmarks.training.build import build_config, build_model
    from benchmarks.training.evaluate import accuracy, predict
    from benchmarks.training.loop import train
    from benchmarks.training.recipe import Recipe

    card = DATASETS.get("mqar")
    assert isinstance(card.source, GeneratedTask)
    easy = card.source.model_copy(
        update={
            "task": Recall(name="mqar", pairs=(4,), queries=1, keys=8, values=4),
            "rows": card.source.rows.model_copy(update={"test": 500, "validation": 100}),
        }
    )
    data = load_card_text(card.model_copy(update={"source": easy}), max_length=12)
    found = {}
    for model in ("dense", "no-attention"):
        point = Point(model, {"dropout": 0.0}, "mqar", 12)
        built = build_model(build_config(point, data), seed=0)
        train(built, data, Recipe(epochs=4), seed=0)
        test = data.test()
        found[model] = accuracy(test.labels, predict(built, test).predicted)
    assert found["dense"] > 0.8
    assert found["no-attention"] < 0.3
