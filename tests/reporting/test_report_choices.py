"""What the report says of our own choices is what the code does."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.checking import attention
from benchmarks.checking.claim_files import load_claims
from benchmarks.reporting.sections import caveats
from benchmarks.reporting.sections.choices import CHOICES, PAPERS_INTERVAL, choices_for
from benchmarks.reporting.view import View
from models.budgetformer_config import BudgetFormerConfig
from models.config import EncoderConfig
from models.head_budget import ROUNDING_SLACK

DEFAULT = BudgetFormerConfig(d_model=64)


def ours(start: str) -> str:
    [text] = [choice.ours for choice in CHOICES if choice.what.startswith(start)]
    return text


def test_the_schedules_are_the_models() -> None:
    assert ours("temperature").startswith(f"{DEFAULT.tau_start} to {DEFAULT.tau_end} ")
    assert f"from {DEFAULT.noise_start:g} to {DEFAULT.noise_end:g} in" in ours("noise")


def test_the_weights_are_the_models() -> None:
    text = ours("weights")
    assert text.startswith(f"budget {DEFAULT.budget_weight} (")
    assert f"entropy {DEFAULT.entropy_weight} (2u - 1)" in text
    assert DEFAULT.entropy.at(0.25) == pytest.approx(DEFAULT.entropy_weight * (2 * 0.25 - 1))


def test_widths_rounding_and_dropout_are_the_models() -> None:
    assert DEFAULT.width_of_controller * 4 == 64
    assert ours("budget network").startswith("d_model/4 ")
    assert DEFAULT.rounding == "floor"
    assert f"floor(s H + {ROUNDING_SLACK:g})".replace("e-06", "e-6") in ours("rounding")
    assert EncoderConfig(d_model=64).width_of_ffn == 4 * 64
    assert f"4 d_model, mean over tokens, {EncoderConfig().dropout};" in ours("encoder")


def test_the_interval_that_a_digest_names_is_the_default() -> None:
    assert (DEFAULT.s_min, DEFAULT.s_max) == PAPERS_INTERVAL


def test_the_margin_is_one_point_everywhere() -> None:
    assert ours("margins").startswith("one percentage point")
    accuracy = [c for c in load_claims("quick") if c.quantity == "accuracy_difference"]
    assert [c.threshold.value for c in accuracy] == [-0.01] * len(accuracy) != []
    assert attention.MARGIN == caveats.MARGIN == 0.01


def test_the_intervals_are_those_of_the_suite(finished: Any) -> None:
    first = choices_for(View(finished))[0]
    assert first.what == "interval [s_min, s_max]"
    assert (
        "[0.1, 0.3] for `budget-low` and [0.1, 0.9] (the digest's) for `budget-high`" in first.ours
    )


def test_choices_of_models_and_meters_that_a_suite_lacks_are_left_out(dense_only: Any) -> None:
    found = {choice.what.split(":")[0] for choice in choices_for(View(dense_only.results()))}
    assert found == {"encoder"}
