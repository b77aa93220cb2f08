"""A study on the validation split alone, as the recipe is chosen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from benchmarks.reporting.report import README, write

if TYPE_CHECKING:
    from pathlib import Path


def page(world: Any, folder: Path) -> str:
    return (write(world.results(), [], folder / "out") / README).read_text(encoding="utf-8")


def test_the_axes_cross_in_a_table_of_validation_accuracy(
    dense_only: Any, tuning: Any, tmp_path: Path
) -> None:
    dense_only.write(tuning(keep=lambda w: w.point.recipe.get("peak_lr") != 0.01, validation=0.9))
    dense_only.write(tuning(keep=lambda w: w.point.recipe.get("peak_lr") == 0.01, validation=0.915))
    text = page(dense_only, tmp_path)
    table = [line for line in text.splitlines() if re.match(r"\| +0\.0", line)]
    assert [re.findall(r"[\w.*]+", line) for line in table] == [
        ["0.001", "90.0", "90.0"],
        ["0.01", "**91.5**", "**91.5**"],
    ]
    assert "the test split has no part in it" in text
    assert "The test split is not read." in text
    assert "tuned on" not in text
    assert "the highest validation accuracy is 91.5 %" in text
    assert "4 of the 4 settings lie in its 95 % interval [89.5, 93.5]" in text


def test_no_empty_table_and_no_missing_figure_stands_for_what_was_not_asked(
    dense_only: Any, tuning: Any, tmp_path: Path
) -> None:
    text = page(dense_only.write(tuning()), tmp_path)
    assert "missing" not in text.replace("is missing", "")
    assert "No figure" not in text
    assert "## Figures" not in text
    assert "## Claims" not in text
    assert "\n\n\n" not in text


def test_nothing_measured_yet_says_so(dense_only: Any, tmp_path: Path) -> None:
    text = page(dense_only, tmp_path)
    assert "Nothing of this study is measured yet." in text
    assert "## In short" not in text
