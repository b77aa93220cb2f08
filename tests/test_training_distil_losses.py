"""The losses of distillation by hand: alone, and in the first record of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_teachers import AVIT, RECIPE, VIT, image_data, student_of, teacher_of
from torch import Tensor, nn

from benchmarks.data.batches import collate
from benchmarks.training.distil import distil
from benchmarks.training.distil_losses import halting_loss, hidden_loss, logit_loss
from models.interface import TokenDecisions


def test_hidden_losses_by_hand() -> None:
    student = torch.tensor([[[1.0, 0.0], [2.0, 2.0]]])
    teacher = torch.tensor([[[0.0, 1.0], [1.0, 1.0]]])
    assert hidden_loss(student, teacher, None, "mse").item() == pytest.approx(1.0)
    # orthogonal at the first place, parallel at the second: the cosine is over channels
    assert hidden_loss(student, teacher, None, "cosine").item() == pytest.approx(0.5)
    first = torch.tensor([[True, False]])
    assert hidden_loss(student * 3, teacher, first, "mse").item() == pytest.approx((9 + 1) / 2)
    assert hidden_loss(student, teacher, first, "cosine").item() == pytest.approx(1.0)
    assert hidden_loss(student, teacher, ~first & False, "mse").item() == 0.0


def test_logit_loss_by_hand() -> None:
    student, teacher = torch.tensor([[0.0, 0.0]]), torch.tensor([[2.0, 0.0]])
    p = 1 / (1 + math.exp(-1.0))
    divergence = p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))
    assert logit_loss(student, teacher).item() == pytest.approx(4 * divergence, rel=1e-5)
    assert logit_loss(teacher, teacher).item() == pytest.approx(0.0, abs=1e-7)


def decisions(halting: Tensor, keep: Tensor) -> TokenDecisions:
    return TokenDecisions(keep.sum(2), keep, halting, torch.zeros(keep.shape[::2]))


def test_halting_loss_by_hand() -> None:
    """One image, three layers, a class token and two patches; one patch is dropped after layer 0."""
    keep = torch.tensor([[[1, 1, 1], [1, 1, 0], [1, 1, 0]]]).bool()
    wanted = torch.tensor([[[0.9, 0.5, 0.99], [0.9, 0.5, 0.0], [1.0, 1.0, 0.0]]])
    found = torch.tensor([[[0.1, 0.25, 0.5], [0.1, 0.4, 0.7], [0.3, 0.3, 0.3]]])

    def kl(p: float, q: float) -> float:
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    divergence = (kl(0.5, 0.25) + kl(0.99, 0.5)) / 2 + kl(0.5, 0.4)
    survive_1 = (0.75 + 0.5) / 2
    survive_2 = (0.75 * 0.6 + 0.5 * 0.3) / 2
    gaps = (survive_1 - 0.5) ** 2 + (survive_2 - 0.5) ** 2
    loss = halting_loss(decisions(found, keep), decisions(wanted, keep))
    assert loss.item() == pytest.approx(divergence + 5 * gaps, rel=1e-5)


@pytest.mark.parametrize(
    ("share", "kind"),
    [(1.0, "mse"), (1.0, "cosine"), (0.0, "mse")],
    ids=["mse", "cosine", "stage-2"],
)
def test_the_first_loss_is_the_one_by_hand(share: float, kind: Any) -> None:
    """One step of a stage on all rows: the record's parts from the captured activations."""
    teacher, data = teacher_of(replace(VIT, dropout=0.0)), image_data(16)
    declared = {"hidden_weight": 2.0, "task_weight": 0.5, "logit_weight": 0.25, "hidden_loss": kind}
    student = student_of(teacher, replace=(0, 1), samples=16, stage1_share=share, **declared)
    batch: Any = collate(data.train, np.arange(16))
    heads = []
    with torch.no_grad():
        for model in (student, teacher):
            for module in model.modules():
                module.training = not isinstance(module, nn.Dropout)
            for mixer in model.mixers():
                mixer.capture = True
            logits = model(*batch.inputs).logits
            heads.append((logits, [mixer.captured for mixer in model.mixers()]))
            for mixer in model.mixers():
                mixer.capture, mixer.captured = False, None
    (own, mine), (theirs, others) = heads
    task = nn.functional.cross_entropy(own, batch.labels).item()
    wanted = {"task": task, "logits": 0.25 * logit_loss(own, theirs).item()}
    if share:
        hidden = sum(hidden_loss(mine[i], others[i], None, kind).item() for i in (0, 1))
        wanted |= {"task": 0.5 * task, "hidden": 2.0 * hidden}
    losses = distil(student, teacher, data, RECIPE, 0).epochs[0].losses
    assert losses == pytest.approx(wanted | {"total": sum(wanted.values())}, rel=1e-3)


def test_the_first_halting_loss_is_a_tenth_of_the_one_by_hand() -> None:
    teacher, data = teacher_of(AVIT), image_data(16)
    student = student_of(teacher, replace=(1,), samples=16, stage1_share=1.0)
    (pixels,) = cast(Any, collate(data.train, np.arange(16))).inputs
    with torch.no_grad():
        for model in (student, teacher):
            for module in model.modules():
                module.training = not isinstance(module, nn.Dropout)
        wanted = teacher(pixels).tokens
        assert not wanted.keep.all()
        loss = halting_loss(student(pixels, keep=wanted.keep).tokens, wanted).item()
    losses = distil(student, teacher, data, RECIPE, 0).epochs[0].losses
    assert losses["halting"] == pytest.approx(0.1 * loss, rel=1e-3)
    total = losses["hidden"] + losses["task"] + losses["halting"]
    assert losses["total"] == pytest.approx(total, rel=1e-5)
