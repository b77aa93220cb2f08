"""What only texts have: padding, and lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch


def test_more_padding_changes_no_value(text_case: Any) -> None:
    model = text_case.model().eval()
    tight, loose = text_case.texts([6, 4, 2]), text_case.texts([6, 4, 2], padded_to=10)
    ids, segments = torch.full_like(loose.input_ids, 5), torch.ones_like(loose.input_ids)
    ids[:, :6], segments[:, :6] = tight.input_ids, tight.segment_ids  # what lies beyond is not read
    loose = replace(loose, input_ids=ids, segment_ids=segments)
    expected = text_case.run(model, tight).logits
    found = text_case.run(model, loose).logits
    assert (found - expected).abs().max() <= text_case.tolerance(expected)


@pytest.mark.parametrize("plain", [False, True])
def test_an_input_of_padding_alone_gives_numbers(text_case: Any, plain: bool) -> None:
    batch = text_case.texts([4, 0], padded_to=6)
    for training in (False, True):
        model = text_case.model().train(training)
        model.plain_attention = plain
        output = model(*batch.inputs)
        assert torch.isfinite(output.logits).all()
        output.logits.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_too_long_an_input_is_one_clear_error(text_case: Any) -> None:
    with pytest.raises(
        ValueError, match="has 11 tokens, but the model has positions for max_length = 10"
    ):
        text_case.model()(*text_case.texts([11]).inputs)


def test_single_texts_need_no_segments(text_case: Any) -> None:
    model = text_case.model().eval()
    batch = text_case.texts([6, 3])
    first = replace(batch, segment_ids=torch.zeros_like(batch.input_ids))
    without = replace(batch, segment_ids=None)
    assert torch.equal(text_case.run(model, first).logits, text_case.run(model, without).logits)
