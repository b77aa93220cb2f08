"""What a student learns from its teacher: hidden states, halting and soft labels.

Source: S2S (arXiv 2605.18865) and the code its authors published with FAR, from which the weights and
the form of the halting terms are taken; the logit term is Hinton et al. 2015 (arXiv 1503.02531).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from models.interface import TokenDecisions

HALTING_WEIGHT = 0.1
"""Of the halting terms beside the hidden and task losses."""

KEEP_WEIGHT = 5.0
"""Of the squared gaps in keep rates beside the divergence of halting scores."""

TEMPERATURE = 2.0
"""Of the soft labels."""

SURE = 1e-6
"""Halting scores are kept this far from 0 and 1 in logarithms."""


def hidden_loss(
    student: Tensor, teacher: Tensor, positions: Tensor | None, kind: Literal["mse", "cosine"]
) -> Tensor:
    """How far the student's head outputs are from the teacher's in one layer.

    Args:
        student: (batch, tokens, channels), heads concatenated, before W^O.
        teacher: likewise, without a gradient.
        positions: (batch, tokens) bool, the places that count; None: all.
        kind: "mse" is the mean squared difference over places and channels; "cosine" is one minus
            the cosine over the channels, mean over the places.
    """
    if kind == "mse":
        gaps = (student - teacher).square().mean(-1)
    else:
        gaps = 1 - functional.cosine_similarity(student, teacher, dim=-1)
    if positions is None:
        return gaps.mean()
    counted = positions.to(gaps.dtype)
    return (gaps * counted).sum() / counted.sum().clamp(min=1.0)


def halting_loss(student: TokenDecisions, teacher: TokenDecisions) -> Tensor:
    """How far the student's halting is from the teacher's, under the teacher's keep masks.

    Sum over the layers of KL(Bernoulli h_teacher || Bernoulli h_student), mean over the patches that
    the layer computed, plus `KEEP_WEIGHT` times the squared gap between the share of patches that
    the teacher's layer computes and the mean over patches of prod (1 - h_student) over the layers
    before it. Class tokens do not count, nor the last layer's score, which is 1 by definition.

    Args:
        student: decisions in a pass that was forced to `teacher.keep`.
        teacher: decisions, without a gradient.
    """
    keep = teacher.keep[:, :, 1:].to(student.halting.dtype)
    wanted, scores = teacher.halting[:, :-1, 1:], student.halting[:, :-1, 1:]
    computed = keep[:, :-1]
    divergence = (_bernoulli_kl(wanted, scores) * computed).sum((0, 2))
    divergence = divergence / computed.sum((0, 2)).clamp(min=1.0)
    survives = torch.cumprod(1 - scores, dim=1).mean((0, 2))
    gaps = survives - keep[:, 1:].mean((0, 2))
    return divergence.sum() + KEEP_WEIGHT * gaps.square().sum()


def logit_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """T^2 KL(softmax(teacher / T) || softmax(student / T)), mean over the batch.

    Args:
        student: logits (batch, n_classes).
        teacher: likewise, without a gradient.
    """
    divergence = functional.kl_div(
        functional.log_softmax(student / TEMPERATURE, -1),
        functional.log_softmax(teacher / TEMPERATURE, -1),
        reduction="batchmean",
        log_target=True,
    )
    return TEMPERATURE**2 * divergence


def _bernoulli_kl(p: Tensor, q: Tensor) -> Tensor:
    p, q = p.clamp(SURE, 1 - SURE), q.clamp(SURE, 1 - SURE)
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
