"""The script that measures BiMamba and A-ViT: what it prints, not how fast this machine is."""

from __future__ import annotations

import pytest
import torch

from benchmarks import attention_speed, vision_speed
from benchmarks.vision_speed import Images, Scan
from models.avit_config import AViTConfig


def test_it_prints_both_tables_and_says_of_each_target_whether_it_is_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_speed, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(vision_speed, "SCANS", (Scan(5, 2, 8, 2.0), Scan(9, 2, 8, 5.0)))
    monkeypatch.setattr(vision_speed, "VIT_SMALL", Images(4, 16, 2, 2, 8, 3))
    vision_speed.main(["--rounds", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(" 16")] == [
        ["16", "5"],
        ["16", "9"],
    ]
    found = [line for line in lines if ">=" in line]
    assert [line.partition(":")[0] for line in found] == [
        "chunks over the scan, N = 5",
        "chunks over the scan, N = 9",
        "A-ViT, realised/promised, worst",
    ]
    assert all(line.endswith((": met", ": NOT MET")) for line in found)
    assert lines[-1].startswith("dense over itself: ")


def test_the_worst_keep_ratio_decides() -> None:
    scans: list[vision_speed.Row] = [
        {"N": 197, "core": 2.5, "at least": 2.0},
        {"N": 1600, "core": 4.9, "at least": 5.0},
    ]
    kept: list[vision_speed.Row] = [{"realised/promised": 0.9}, {"realised/promised": 0.79}]
    assert [t.line.endswith(": met") for t in vision_speed.targets(scans, kept)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("ratio", [0.4, 0.8])
def test_random_masks_keep_what_they_should_and_bring_nothing_back(ratio: float) -> None:
    torch.manual_seed(0)
    config = AViTConfig(depth=12, max_length=64, patch_size=2)
    keep = vision_speed.random_masks(config, 8, ratio)
    assert keep.shape == (8, 12, config.n_tokens)
    assert keep[:, 0].all()
    assert keep[:, :, 0].all()
    assert not (keep[:, 1:] & ~keep[:, :-1]).any()
    # 8,192 patches, each kept for a number of layers of its own: four standard errors
    assert keep[:, :, 1:].float().mean().item() == pytest.approx(ratio, abs=4 * 0.5 / 8192**0.5)
