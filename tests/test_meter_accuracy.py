"""Scores against hand-counted values, and what the accuracy meter writes down."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.data.load import EncodedSplit
from benchmarks.meters.accuracy import measure
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.planning.points import Point
from benchmarks.training.evaluate import confusion, macro_f1
from models.config import EncoderConfig, VisionConfig
from models.interface import Classifier, ClassifierOutput, HeadDecisions, TokenDecisions

if TYPE_CHECKING:
    from benchmarks.data.load import TextData

CLASSES = ("a", "b", "c")


class Fake(Classifier):
    """Predicts the first token; with heads, k = 1 + label in layer 0 and 3 in layer 1."""

    def __init__(self, *, heads: bool) -> None:
        super().__init__()
        self.config = EncoderConfig(depth=2, n_heads=4, n_classes=3, vocab_size=3)
        self.heads = heads

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del key_padding_mask, segment_ids
        first = input_ids[:, 0]
        if self.heads and self.head_mode == "soft":
            first = torch.zeros_like(first)
        logits = torch.nn.functional.one_hot(first, 3).float()
        if not self.heads:
            return ClassifierOutput(logits)
        k = torch.stack([1 + input_ids[:, 0], torch.full_like(first, 3)], dim=1)
        selected = torch.arange(4) >= 4 - k[:, :, None]
        return ClassifierOutput(
            logits, HeadDecisions(k / 4, torch.full((*k.shape, 4), 0.25), k, selected)
        )


def split_of(tokens: list[int], labels: list[int]) -> EncodedSplit:
    """Row i holds its token 1 + i % 3 times."""
    lengths = [1 + i % 3 for i in range(len(tokens))]
    return EncodedSplit(
        name="test",
        row_ids=np.arange(len(tokens), dtype=np.int64)[::-1] * 7,
        tokens=np.repeat(tokens, lengths).astype(np.int32),
        segments=None,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=np.asarray(labels, dtype=np.int64),
        n_truncated=1,
        n_empty=0,
    )


def run(model: Classifier) -> Measurement:
    test = split_of([0, 0, 1, 1, 2, 2, 2, 2], [0, 0, 1, 0, 2, 2, 2, 1])
    data = SimpleNamespace(
        card=SimpleNamespace(name="made-up", run_name="made-up", source=None),
        classes=CLASSES,
        max_length=8,
        hash="abc",
        partial=False,
        note="a note",
        test=lambda: test,
    )
    point = Point(model="fake", params={}, dataset="made-up", max_length=8)
    subject = Subject(point, model.eval(), cast("TextData", data), None)
    return measure(subject, {"batch_size": 3})


def value(measurement: Measurement, name: str, **context: Any) -> float:
    (found,) = [v.value for v in measurement.values if v.name == name and v.context == context]
    return found


def test_accuracy_and_f1_are_the_hand_counted_ones() -> None:
    measurement = run(Fake(heads=False))
    accuracy = measurement.values[0]
    assert (accuracy.name, accuracy.value, accuracy.n) == ("accuracy", 6 / 8, 8)
    assert (accuracy.method, accuracy.confidence) == ("wilson", 0.95)
    assert accuracy.low == pytest.approx(0.4093, abs=1e-4)
    assert accuracy.high == pytest.approx(0.9285, abs=1e-4)
    # F1 by hand: a 2*2/(3+2), b 2*1/(2+2), c 2*3/(3+4)
    expected = (4 / 5 + 1 / 2 + 6 / 7) / 3
    assert value(measurement, "macro_f1") == pytest.approx(expected)
    assert measurement.series["confusion"] == [[2, 1, 0], [0, 1, 1], [0, 0, 3]]
    assert measurement.series["recall"] == [pytest.approx(2 / 3, abs=1e-6), 0.5, 1.0]
    assert {v.name for v in measurement.values} == {"accuracy", "macro_f1"}
    assert measurement.warnings == []


def test_heads_are_recorded_per_model_layer_and_row() -> None:
    measurement = run(Fake(heads=True))
    assert value(measurement, "accuracy") == 6 / 8
    assert value(measurement, "soft_accuracy") == 3 / 8
    assert value(measurement, "mean_k", layer=0) == pytest.approx(2.25)
    assert value(measurement, "mean_k", layer=1) == 3.0
    assert value(measurement, "mean_k") == pytest.approx(2.625)
    assert value(measurement, "mean_s") == pytest.approx(2.625 / 4)
    assert next(v.context for v in measurement.values if v.name == "mean_k") == {}
    assert value(measurement, "degenerate", heads="one") == 2 / 16
    assert value(measurement, "degenerate", heads="zero") == 0.0
    assert value(measurement, "degenerate", heads="all") == 0.0
    assert measurement.series["head_use"] == [[0.0, 0.5, 0.75, 1.0], [0.0, 1.0, 1.0, 1.0]]
    rows = measurement.arrays
    assert rows is not None
    assert rows["row_id"].tolist() == [49, 42, 35, 28, 21, 14, 7, 0]
    assert rows["label"].tolist() == [0, 0, 1, 0, 2, 2, 2, 1]
    assert rows["prediction"].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert rows["length"].tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
    assert rows["k_0"].tolist() == [1, 1, 2, 2, 3, 3, 3, 3]
    assert rows["heads_0"].tolist() == [0b1000] * 2 + [0b1100] * 2 + [0b1110] * 4
    assert rows["heads_1"].tolist() == [0b1110] * 8
    assert str(rows["k_0"].dtype) == "int8"
    assert str(rows["s_0"].dtype) == "float32"


class Halting(Fake):
    """Layer 0 computes all five tokens, layer 1 as many as the label and two."""

    def __init__(self) -> None:
        super().__init__(heads=False)
        self.config = cast("Any", VisionConfig(depth=2, d_model=8, max_length=8, n_classes=3))

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        output = super().forward(input_ids, key_padding_mask, segment_ids)
        kept = torch.stack([torch.full_like(input_ids[:, 0], 5), 2 + input_ids[:, 0]], dim=1)
        keep = torch.arange(5) < kept[:, :, None]
        nothing = torch.zeros(keep.shape)
        return replace(output, tokens=TokenDecisions(kept, keep, nothing, nothing[:, 0]))


def test_kept_tokens_are_recorded_per_model_layer_and_row() -> None:
    measurement = run(Halting())
    assert value(measurement, "mean_kept", layer=0) == 5
    assert value(measurement, "mean_kept", layer=1) == pytest.approx(2 + 10 / 8)
    assert value(measurement, "mean_kept") == pytest.approx((5 + 3.25) / 2)
    assert value(measurement, "keep_ratio", tokens="all") == pytest.approx((1 + 0.65) / 2)
    assert value(measurement, "keep_ratio", tokens="all", layer=1) == pytest.approx(0.65)
    assert next(v.context for v in measurement.values if v.name == "mean_kept") == {}
    assert {v.unit for v in measurement.values if v.name == "mean_kept"} == {"tokens"}
    rows = measurement.arrays
    assert rows is not None
    assert rows["kept_0"].tolist() == [5] * 8
    assert rows["kept_1"].tolist() == [2, 2, 3, 3, 4, 4, 4, 4]
    assert "k_0" not in rows


def test_the_data_used_says_what_was_cut_off() -> None:
    data = run(Fake(heads=False)).data
    assert data is not None
    assert (data.name, data.split, data.n, data.hash) == ("made-up", "test", 8, "abc")
    assert data.note == "a note; 1 of 8 inputs cut to 8 tokens"


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_confusion_and_f1_agree_with_counting(rows: list[tuple[int, int]]) -> None:
    labels, predicted = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
    counts = confusion(labels, predicted, 5)
    assert counts.tolist() == [[rows.count((i, j)) for j in range(5)] for i in range(5)]
    scores = []
    for c in range(5):
        tp = rows.count((c, c))
        wrong = sum((label == c) != (said == c) for label, said in rows)
        if tp or wrong:
            scores.append(2 * tp / (2 * tp + wrong))
    assert macro_f1(counts) == pytest.approx(sum(scores) / len(scores))
