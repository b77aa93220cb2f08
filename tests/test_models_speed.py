"""The script that measures the attention layer: what it prints, not how fast this machine is."""

from __future__ import annotations

import pytest

from benchmarks import attention_grid, attention_speed
from benchmarks.attention_grid import Target
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


def test_the_grid_prints_tables_and_says_of_each_target_whether_it_is_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_speed, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(attention_grid, "SIZES", (Size(16, 8, 4, 3), Size(32, 8, 4, 3)))
    monkeypatch.setattr(attention_grid, "SMALL", (Size(8, 8, 4, 3),))
    monkeypatch.setattr(attention_grid, "TRAINING", Size(16, 8, 4, 3))
    attention_speed.main(["--grid", "--rounds", "2"])
    printed = capsys.readouterr()
    assert "3/3 done" in printed.err
    rows = [line.split() for line in printed.out.splitlines()]
    assert sum(row[:3] == ["16", "8", "4"] for row in rows) == 4  # layer and model, batch 3 and 1
    targets = [line for line in printed.out.splitlines() if ">=" in line or "<=" in line]
    assert len(targets) == 10
    assert all(line.endswith((": met", ": NOT MET")) for line in targets)


def test_targets_count_the_grid_alone_and_know_both_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention_grid, "SIZES", (Size(16, 8, 4, 3),))

    def row(d: int, share: float) -> dict[str, object]:
        parts = {f"{name} of ideal": share for name in ("1/8", "1/4", "1/2", "mixed")}
        return {"d": d, "k/H=1": share, **parts, **{f"k/H=1/{n}": share for n in (8, 4, 2)}}

    rows = [row(16, 0.9), row(16, 0.7), row(16, 0.9), row(8, 0.1)]
    found = {t.name: t for t in attention_grid.targets(rows, rows, {"layer": 1.1, "model": 1.3})}
    assert found["realised/ideal, median"].value == 0.9
    assert found["realised/ideal, worst"].value == 0.7
    assert found["realised/ideal, worst"].line.endswith(": met")
    assert found["k = H over dense, worst"].line.endswith("NOT MET")
    assert found["training one layer in soft mode over dense"].line.endswith(": met")
    assert found["training a model in soft mode over dense"].line.endswith("NOT MET")
    assert Target("x", 1.0, 1.0).line == "x: 1.00 (>= 1.00): met"
