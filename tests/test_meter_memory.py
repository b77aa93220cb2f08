"""Peak memory: known patterns to the byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.data.batches import collate
from benchmarks.data.load import EncodedSplit, TextData, load_text
from benchmarks.meters.interface import Subject
from benchmarks.meters.memory import measure, peak_of, peak_of_forward
from benchmarks.planning.points import Point
from models.config import EncoderConfig
from models.interface import Classifier, ClassifierOutput

MIB = 2**20


def block(mib: int) -> Tensor:
    return torch.empty(mib * MIB, dtype=torch.uint8)


def test_peak_is_the_most_held_at_once() -> None:
    def work() -> Tensor:
        first = block(10)
        second = block(14)
        del first
        third = block(3)
        del second
        return third

    assert peak_of(work) == 24 * MIB


def test_what_was_there_before_is_not_counted_and_its_release_hides_nothing() -> None:
    held = [block(50)]

    def work() -> Tensor:
        new = block(4)
        held.clear()
        return new

    assert peak_of(work) == 4 * MIB


def test_nothing_allocated_is_nothing() -> None:
    assert peak_of(lambda: None) == 0


def test_peaks_of_two_calls_do_not_add_up() -> None:
    assert [peak_of(lambda: block(2)) for _ in range(2)] == [2 * MIB] * 2


def test_scratch_inside_an_operator_is_seen() -> None:
    # each result is 1 MiB; the fused LSTM also holds gates and states of its own
    lstm = nn.LSTM(64, 64, batch_first=True).eval()
    x = torch.zeros(8, 512, 64)
    with torch.inference_mode():
        assert peak_of(lambda: lstm(x)[0]) > 8 * 512 * 64 * 4


def test_threads_are_restored() -> None:
    before = torch.get_num_threads()
    peak_of(lambda: None)
    assert torch.get_num_threads() == before


class Wide(Classifier):
    """Makes one float for each of the batch's places, `width` times over; remembers shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.config = EncoderConfig()
        self.weight = nn.Parameter(torch.zeros(10, 3))
        self.tied = self.weight
        self.narrow_weight = nn.Parameter(torch.zeros(4, dtype=torch.float16))
        self.seen: list[tuple[int, ...]] = []

    def forward(
        self, input_ids: Tensor, key_padding_mask: Tensor, segment_ids: Tensor | None = None
    ) -> ClassifierOutput:
        del key_padding_mask, segment_ids
        self.seen.append(tuple(input_ids.shape))
        return ClassifierOutput(torch.zeros(*input_ids.shape, 100))


def data_with(lengths: list[int]) -> TextData:
    data = load_text("random-tokens", max_length=8)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    split = EncodedSplit(
        name="generated",
        row_ids=np.arange(len(lengths), dtype=np.int64),
        tokens=data.test().tokens[: offsets[-1]],
        segments=None,
        offsets=offsets,
        labels=np.zeros(len(lengths), np.int64),
    )
    return replace(data, _test=split)


def test_values_are_those_of_the_longest_inputs() -> None:
    model = Wide()
    lengths = [1, 2, 3, 8, 2, 2, 7, 2, 2, 2, 5]
    subject = Subject(Point("wide", {}, "made-up", 8, recipe=None), model, data_with(lengths), None)
    result = measure(subject, {"batch_sizes": [1, 4]})
    found = {(v.name, v.context.get("batch_size")): v.value for v in result.values}
    assert found == {
        ("parameters", None): 34,
        ("parameter_bytes", None): 30 * 4 + 4 * 2,
        ("peak_memory", 1): 8 * 100 * 4,
        ("peak_memory", 4): 4 * 8 * 100 * 4,
    }
    assert model.seen[0] == (1, 8)
    assert (4, 8) in model.seen


def test_the_same_on_every_call() -> None:
    model = Wide()
    batch = collate(data_with([5, 3]).test(), [0, 1])
    assert {peak_of_forward(model, batch) for _ in range(3)} == {2 * 5 * 100 * 4}


@pytest.mark.slow
def test_a_real_model_holds_at_least_its_widest_activation() -> None:
    from benchmarks.training.build import build_model
    from models.dense_config import DenseConfig

    model = build_model(DenseConfig(max_length=8), seed=0).eval()
    subject = Subject(
        Point("dense", {}, "made-up", 8, recipe=None), model, data_with([8] * 32), None
    )
    peak = next(
        v.value for v in measure(subject, {"batch_sizes": [32]}).values if v.name == "peak_memory"
    )
    hidden = 32 * 8 * 256 * 4
    assert hidden <= peak <= 8 * hidden
