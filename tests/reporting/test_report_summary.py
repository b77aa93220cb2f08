"""The sentences at the head of the page: from numbers and rules, the bad as plainly as the good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.checking.claim_files import load_claim
from benchmarks.checking.claims import evaluate_claim
from benchmarks.reporting.sections.summary import summary
from benchmarks.reporting.text import difference_text
from benchmarks.reporting.view import View
from benchmarks.statistics.intervals import Interval

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = """
schema = 1
id = "made-up"
title = "A made-up claim"
statement = "It is so."
suite = "suite"
sweep = "main"
baseline = "dense"
candidates = ["budget-low"]
datasets = ["r8"]
quantity = "{quantity}"
{rest}
[source]
paper = "Some paper"
section = "Table 1"
certainty = "none"
[threshold]
direction = "above"
value = {value}
why = "ours"
"""


def about(text: str, dataset: str, label: str, sentence: str) -> str:
    """What one sentence on a data set says of one variant."""
    [part] = [p for p in text.split("**On ") if p.startswith(dataset)]
    [line] = [line for line in part.splitlines() if line.startswith(f"- {sentence}")]
    said = line.rstrip(".").partition(": ")[2].split("; ")
    return next(text for text in said if text.startswith(f"`{label}`"))


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.90, ", lower"), (0.99, ", higher"), (0.9575, ", no difference shown")],
)
def test_a_difference_is_called_what_its_interval_says(
    made_up: Any, tuning: Any, accuracy: float, said: str
) -> None:
    made_up.write(
        tuning(
            accuracy={("r8", "budget-low"): accuracy},
            keep=lambda w: w.planned.sweep == "main" and w.meter.name in {"accuracy", "flops"},
        )
    )
    text = summary(View(made_up.results()), [])
    assert about(text, "r8", "budget-low", "Accuracy against").endswith(f"]{said}")
    work = about(text, "r8", "budget-low", "Work")
    assert "saves" in work
    assert "of 8 heads per layer" in work


def test_four_sentences_in_a_fixed_order(finished: Any) -> None:
    lines = summary(View(finished), []).splitlines()
    starts = [line.split()[1:3] for line in lines if line.startswith("- ")]
    assert starts == 2 * [
        ["Accuracy", "against"],
        ["Work:", "`budget-low`"],
        ["Realised", "speed-up"],
        ["Accuracy", "of"],
    ]


def test_every_control_is_compared_with_the_budget_that_it_keeps(finished: Any) -> None:
    text = summary(View(finished), [])
    lines = [line for line in text.splitlines() if "controls: against `budget-low`" in line]
    assert len(lines) == 2
    for label in ("random-trained", "random-at-test", "fewer-heads"):
        assert all(f"`{label}` (" in line for line in lines)
    assert text.count("; and against `dense`, `no-attention` (no attention at all) ") == 2


def test_a_claims_verdict_stands_beside_its_number(finished: Any, tmp_path: Path) -> None:
    claims = []
    for quantity, rest, value in (
        ("accuracy_difference", 'decided_by = "paired_t"', 0.5),
        ("speedup", 'batch_size = 32\ndecided_by = "log_ratio_t"', 1.0),
    ):
        path = tmp_path / "made-up.toml"
        path.write_text(CLAIM.format(quantity=quantity, rest=rest, value=value))
        claims.append(evaluate_claim(load_claim(path), finished))
    text = summary(View(finished), claims)
    assert "(above +50.0 points: **refuted**)" in about(
        text, "r8", "budget-low", "Accuracy against"
    )
    [time] = [x for x in text.splitlines() if x.startswith("- Realised")][:1]
    assert "at batch 32 (faster; above 1.00x: **holds**), where MACs promise" in time
    assert "at batch 1 (slower)" in time
    assert "**" not in time.partition("budget-high")[2]


def test_one_seed_shows_no_interval_and_says_that_it_decides_nothing(
    made_up: Any, tuning: Any
) -> None:
    made_up.write(tuning(keep=lambda w: w.point.seed == 0 and w.planned.sweep == "main"))
    text = summary(View(made_up.results()), [])
    assert "points [" not in text
    assert "no difference shown;" not in text
    assert "There is one seed" in text


def test_more_work_is_not_called_a_saving(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: w.meter.name in {"accuracy", "flops"}, share=1.2))
    line = about(summary(View(made_up.results()), []), "r8", "budget-low", "Work")
    assert " adds " in line
    assert "saves" not in line


def test_an_end_beside_zero_shows_its_side() -> None:
    assert difference_text(Interval(-0.009, -0.018, -0.0003, "paired_t", 0.95, 3)) == (
        "-0.9 points [-1.80, -0.03], lower"
    )


def test_nothing_measured_gives_no_sentence(made_up: Any) -> None:
    assert summary(View(made_up.results()), []) == ""
