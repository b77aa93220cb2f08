"""Measures of an input's complexity against hand-counted values."""

from __future__ import annotations

import builtins
import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.complexity.disagreement import disagreement
from benchmarks.complexity.measure import measures
from benchmarks.complexity.negation import negations
from benchmarks.complexity.overlap import overlap
from benchmarks.complexity.rarity import Frequencies, rarity
from benchmarks.complexity.words import documents, splitter, without_marks
from benchmarks.data.card import find_card
from benchmarks.data.fetch import is_available
from benchmarks.data.load import load_text
from benchmarks.data.vocabulary import train_vocabulary
from benchmarks.errors import DataError
from benchmarks.meters.accuracy import losses
from benchmarks.meters.complexity import measure
from benchmarks.meters.interface import Subject
from benchmarks.planning.points import Point

words = splitter()


def test_words_are_those_of_the_vocabulary() -> None:
    text = "Ça n'est pas: DON'T panic -- it's 3.5 o'clock"
    assert words("Don't, É!") == ["don", "'", "t", ",", "e", "!"]
    assert without_marks(words("Don't, É!")) == ["don", "t", "e"]
    tokenizer = train_vocabulary([text, text])
    assert words(text) == tokenizer.encode(text, add_special_tokens=False).tokens


def test_rarity_is_the_mean_surprise() -> None:
    # a 3 times, b once; 4 words and two kinds: a denominator of 4 + 2 + 1
    frequencies = Frequencies([(["a", "a", "."],), (["a", "b"],)])
    assert frequencies.surprise("a") == pytest.approx(math.log(7 / 4))
    assert frequencies.surprise("unseen") == pytest.approx(math.log(7))
    expected = (math.log(7 / 4) + math.log(7 / 2)) / 2
    assert rarity((["a", ","], ["b"]), frequencies) == pytest.approx(expected)
    assert math.isnan(rarity((["!"],), frequencies))


def test_surprise_is_that_of_a_distribution() -> None:
    frequencies = Frequencies([(["a", "a", "b", "c"],)])
    seen = sum(math.exp(-frequencies.surprise(word)) for word in "abc")
    assert seen + math.exp(-frequencies.surprise("unseen")) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is not good, and never was.", 2),
        ("I don't know; nobody can't.", 3),
        ("I don\u2019t", 1),
        ("didn t work, wasn t nice", 2),  # as in sets that have lost their apostrophes
        ("did n't, didnt", 2),
        ("you can and won at nothing", 1),
        ("a note on notes: Ann T. won", 0),
        ("don", 0),
        ("", 0),
    ],
)
def test_negators_are_counted(text: str, expected: int) -> None:
    assert negations((words(text),)) == expected


def test_negators_of_both_texts_count_and_do_not_join() -> None:
    assert negations((["no"], ["never", "x"])) == 2
    assert negations((["don"], ["t"])) == 0


def test_overlap_is_jaccards() -> None:
    pair = (words("A man sings."), words("A man, a plan"))
    assert overlap(pair) == 2 / 4
    assert overlap((["a"], ["a", "a"])) == 1
    assert overlap((["a"], ["b"])) == 0
    assert overlap((["a"], [])) == 0
    assert math.isnan(overlap(([], ["."])))


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef")))
def test_overlap_is_symmetric(first: list[str], second: list[str]) -> None:
    one, other = overlap((first, second)), overlap((second, first))
    assert one == other or (math.isnan(one) and not first and not second)


def test_losses_are_cross_entropies() -> None:
    logits = np.array([[0, math.log(3)], [500.0, -500.0]], np.float32)
    found = losses(logits, np.array([1, 1]))
    assert found == pytest.approx([-math.log(3 / 4), 1000])


def test_bag_of_words_finds_what_single_words_say() -> None:
    pytest.importorskip("sklearn", reason="needs the extra yardsticks")
    from benchmarks.complexity.bag_of_words import held_out_loss

    training = [(["good", "film"],), (["bad", "film"],)] * 10
    labels = np.array([1, 0] * 10)
    test = [(["good"],), (["bad"],), (["film"],)]
    loss = held_out_loss(training, labels, test, np.array([1, 1, 1]))
    assert loss[0] < 0.2
    assert loss[1] > 1.5
    assert loss[2] == pytest.approx(math.log(2), abs=0.05)


def subject(name: str, max_length: int) -> Subject:
    point = Point("dense", {}, name, max_length)
    return Subject(point, cast(Any, None), load_text(name, max_length=max_length), None)


@pytest.fixture
def no_sklearn(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("no_sklearn")
def test_without_scikit_learn_the_measure_is_unmeasured_with_its_reason() -> None:
    found = measure(subject("listops", 32), {})
    assert "scikit-learn" in found.info["unmeasured"]["bag_of_words_loss"]
    assert found.arrays is not None
    assert list(found.arrays) == ["row_id", "length", "depth", "digits", "operations"]
    assert {v.name: v.unit for v in found.values}["depth"] == "count"
    assert "words" in found.info["unmeasured"]["rarity"]


def test_a_broken_scikit_learn_is_an_error_not_a_missing_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> Any:
        raise ModuleNotFoundError("No module named 'joblib'", name="joblib")

    monkeypatch.setattr("benchmarks.complexity.measure.held_out_loss", broken)
    data = load_text("listops", max_length=32)
    with pytest.raises(ModuleNotFoundError, match="joblib"):
        measures(data, data.test().lengths)


@pytest.mark.data
@pytest.mark.usefixtures("no_sklearn")
def test_a_set_of_pairs_is_measured_as_far_as_the_model_sees_it() -> None:
    if not is_available(find_card("sts-b")):
        pytest.skip("needs the package of sts-b")
    short = load_text("sts-b", max_length=12)
    (cut,) = documents(short, short.test())
    lengths = [sum(map(len, document)) + 1 for document in cut]
    assert lengths == short.test().lengths.tolist()
    found = measure(subject("sts-b", 12), {})
    assert found.arrays is not None
    assert list(found.arrays) == ["row_id", "length", "rarity", "negations", "overlap"]
    assert found.arrays.dtypes.map(lambda kind: kind.kind).isin(["i", "f"]).all()  # no texts
    assert found.info["unmeasured"]["disagreement"]


@pytest.mark.data
def test_disagreement_is_the_standard_deviation_of_the_ratings() -> None:
    card = find_card("vader-movie")
    if not is_available(card):
        pytest.skip("needs the package of vader-movie")
    found = disagreement(card, np.array([0, 2]))
    first = np.std([3, 2, 2, 2, 0, 4, 3, 1, 2, 2, 4, 3, 3, 1, 2])
    third = np.std([-1, 0, -1, 0, -1, -1, -1, -1, 0, -2, 1, 1, -1, -1, -1])
    assert found == pytest.approx([first, third], abs=1e-4)
    assert card.ratings is not None
    wrong = card.model_copy(update={"ratings": card.ratings.model_copy(update={"key": 1})})
    with pytest.raises(DataError, match="column 1 is not that of the rows"):
        disagreement(wrong, np.array([0]))


def test_a_set_without_ratings_has_no_disagreement() -> None:
    assert disagreement(find_card("sts-b"), np.array([0])) is None
