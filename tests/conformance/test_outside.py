"""An image model from an outside package: found, built, and held to the same tests by themselves."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import benchmarks.registry
from benchmarks import catalog
from benchmarks.registry import Registry
from benchmarks.training.build import build_model

CONFIG = """
from dataclasses import dataclass
from models.config import Macs, VisionConfig

@dataclass(frozen=True, kw_only=True)
class MeanPixelConfig(VisionConfig):
    target = "outside_pixels:MeanPixel"
    summary = "a linear map of each patch, and their mean"

    def macs(self, length, k=None):
        patches = (length // self.patch_size) ** 2
        inside = patches * self.d_model * self.channels * self.patch_size**2
        out = self.d_model * self.n_classes
        return Macs(embedding=inside, classifier=out, elementwise=2.0 * patches * self.d_model)

@dataclass(frozen=True, kw_only=True)
class LeakyConfig(MeanPixelConfig):
    target = "outside_pixels:Leaky"
"""
MODEL = '''
import torch
from models.interface import Classifier, ClassifierOutput

class MeanPixel(Classifier):
    def __init__(self, config):
        super().__init__()
        self.config = config
        patch = config.patch_size
        self.patches = torch.nn.Conv2d(config.channels, config.d_model, patch, patch)
        self.dropout = torch.nn.Dropout(config.dropout)
        self.head = torch.nn.Linear(config.d_model, config.n_classes)

    def forward(self, pixel_values):
        size = (self.config.channels, self.config.image_size, self.config.image_size)
        if pixel_values.shape[1:] != size:
            raise ValueError(f"the model takes images {size}, not {tuple(pixel_values.shape[1:])}")
        x = self.dropout(torch.tanh(self.patches(pixel_values)).mean((2, 3)))
        return ClassifierOutput(self.head(x))

class Leaky(MeanPixel):
    """Draws its inputs towards the mean of the batch: an image alone gets other logits than among others."""

    def forward(self, pixel_values):
        centre = pixel_values.mean(0) if pixel_values.ndim == 4 else 0
        return super().forward(pixel_values - 0.5 * centre)
'''


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside_pixels_config.py").write_text(CONFIG)
    (tmp_path / "outside_pixels.py").write_text(MODEL)
    info = tmp_path / "outside_pixels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-pixels\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[frugalbench.models]\nmean-pixel = outside_pixels_config:MeanPixelConfig\n"
        "leaky = outside_pixels_config:LeakyConfig\n"
    )
    return tmp_path


def test_an_outside_image_model_registers(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.setattr(benchmarks.registry, "_entry_points", importlib.metadata.entry_points)
    known: Registry[Any] = Registry(
        "model", group="frugalbench.models", discover=catalog._models, accept=catalog._accept_model
    )
    assert "mean-pixel" in known.names()
    assert known.origin("mean-pixel").startswith("package outside-pixels")
    config = known.get("mean-pixel")(max_length=8, patch_size=2, channels=1)
    assert config.inputs == "image"
    assert build_model(config, 0)(torch.zeros(2, 1, 8, 8)).logits.shape == (2, 2)


@pytest.mark.slow
def test_an_outside_model_is_held_to_these_tests(outside: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k",
         "mean-pixel or leaky", str(Path(__file__).parent)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(outside)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    failed = {line.split("::")[1].split(" ")[0] for line in done.stdout.splitlines()
              if line.startswith(("FAILED", "ERROR"))}  # fmt: skip
    assert failed == {"test_an_input_does_not_depend_on_its_batch[leaky]"}, done.stdout
    assert done.stdout.count("passed") == 1
