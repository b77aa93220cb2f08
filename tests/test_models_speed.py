"""The script that measures the attention layer: what it prints, not how fast this machine is."""

from __future__ import annotations

import pytest

from benchmarks import attention_grid, attention_speed
from benchmarks.attention_speed import Size, Target


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


def test_the_short_run_prints_targets_beside_its_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_speed, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(attention_speed, "NARROWEST", 16)
    monkeypatch.setattr(attention_speed, "QUICK", (Size(16, 8, 4, 3), Size(8, 8, 4, 3)))
    attention_speed.main(["--quick", "--rounds", "2"])
    lines = capsys.readouterr().out.splitlines()
    found = [line for line in lines if ">=" in line]
    assert [line.partition(":")[0] for line in found] == [
        "realised/ideal, median",
        "realised/ideal, worst",
        "mixed k, realised/ideal, median",
        "mixed k, realised/ideal, worst",
        "k = H over dense, median",
        "k = H over dense, worst",
    ]
    assert all(line.endswith((": met", ": NOT MET")) for line in found)
    assert lines[-1].startswith("dense over itself: ")


def test_targets_of_rows_told_apart_by_batch_and_width() -> None:
    def row(d: int, batch: int, share: str, realised: float, ratio: float) -> dict[str, object]:
        return {"d": d, "batch": batch, "k/H": share, "realised": realised, "realised/ideal": ratio}

    rows = [
        row(256, 32, "1/8", 6.4, 0.8),
        row(256, 32, "1/2", 1.4, 0.7),
        row(512, 32, "1", 0.98, 0.98),
        row(512, 32, "mixed", 1.2, 0.79),
        row(256, 1, "1/2", 1.1, 0.55),
        row(256, 1, "1", 0.96, 0.96),
        row(64, 1, "1", 0.1, 0.1),
    ]
    found = {t.name: (t.value, t.line.endswith(": met")) for t in attention_speed.targets(rows)}
    assert found == {
        "realised/ideal, median": (0.75, False),
        "realised/ideal, worst": (0.7, True),
        "mixed k, realised/ideal, median": (0.79, False),
        "mixed k, realised/ideal, worst": (0.79, False),
        "k = H over dense, median": (0.98, True),
        "k = H over dense, worst": (0.98, True),
        "batch 1, k < H over dense, worst": (1.1, True),
        "batch 1, k = H over dense, worst": (0.96, False),
    }


def test_a_turn_that_is_disturbed_disturbs_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {
        "dense": [1.0, 1.0, 9.0],
        "fast": [0.5, 0.5, 4.5],
        attention_speed.AGAIN: [1.0, 1.0, 9.0],
    }
    monkeypatch.setattr(
        attention_speed, "_in_turns", lambda *_, **__: {k: v[:] for k, v in times.items()}
    )
    speeds = attention_speed.against_dense({"dense": lambda: None, "fast": lambda: None}, rounds=3)
    assert speeds.dense == 1.0
    assert speeds.over_dense == {"fast": 2.0, attention_speed.AGAIN: 1.0}


def test_the_grid_prints_tables_and_says_of_each_target_whether_it_is_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_speed, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(attention_grid, "NARROWEST", 16)
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
    assert "dense over itself: " in printed.out
    assert all(line.endswith((": met", ": NOT MET")) for line in targets)


def test_targets_count_the_grid_alone_and_know_both_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention_grid, "NARROWEST", 16)

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
