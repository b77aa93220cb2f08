"""The script that measures the attention layer: what it prints, not how fast this machine is."""

from __future__ import annotations

import pytest

from benchmarks import attention_speed
from benchmarks.attention_speed import Size


def test_one_row_per_share_with_its_ideal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_speed, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(attention_speed, "QUICK", (Size(16, 8, 4, 3), Size(16, 8, 4, 1)))
    attention_speed.main(["--quick", "--rounds", "2"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    header = next(line for line in lines if "k/H" in line)
    assert header[:5] == ["d", "H", "N", "batch", "k/H"]
    rows = [line for line in lines if line[:3] == ["16", "8", "4"]]
    assert [row[4] for row in rows] == ["1/8", "1/4", "1/2", "1", "mixed", "1/8", "1/4", "1/2", "1"]
    assert [row[8] for row in rows[:4]] == ["8.00", "4.00", "2.00", "1.00"]
    for row in rows:
        realised, ideal, ratio = float(row[6]), float(row[8]), float(row[9])
        assert realised > 0
        assert ratio == pytest.approx(realised / ideal, abs=0.01)
