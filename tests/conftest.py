"""Shared by all tests: one thread, no network, working state in a folder of the test's own."""

from __future__ import annotations

import os

os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
)

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("steady")


def _declare_operators() -> torch.library.Library | None:
    """Makes torchvision, which timm and transformers import, work beside another build of torch.

    Its compiled operators do not load there, and no model that is compared with needs them.
    """
    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return operators
    return None


OPERATORS = _declare_operators()  # held, or they would be gone


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Fresh weights do not hang on the tests that ran before."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points working state at a folder of this test."""
    runs = tmp_path / "runs"
    monkeypatch.setenv("FRUGALBENCH_RUNS", str(runs))
    return runs


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses every connection that leaves this machine."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            raise AssertionError(f"a test tried to connect to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)
