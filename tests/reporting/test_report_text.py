from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reporting import text


@given(st.lists(st.text(alphabet="ab|\\ \n`", max_size=8), min_size=2, max_size=2))
def test_a_cell_never_breaks_its_row(cells: list[str]) -> None:
    lines = text.table(["a | b", "c"], [cells]).splitlines()
    assert len(lines) == 3
    for line in lines:
        # a pipe is plain text only after an odd number of backslashes
        bars = [m for m in re.finditer(r"\\*\|", line) if len(m.group()) % 2 == 1]
        assert len(bars) == 3, line


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1234567, "1,234,567"), (12.345, "12.3"), (0.012345, "0.0123"), (-3.14159, "-3.14")],
)
def test_significant(value: float, shown: str) -> None:
    assert text.significant(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(-0.004, "-0.4"), (0.0271, "+2.7"), (-0.0001, "0.0")])
def test_points(value: float, shown: str) -> None:
    assert text.points(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (59.2, "59 s"),
        (59.7, "1 min 00 s"),
        (74, "1 min 14 s"),
        (7300, "2 h 01 min"),
    ],
)
def test_duration(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


def test_listing_is_cut() -> None:
    assert text.listing(list("abcd"), most=2) == "a, b and 2 more"
