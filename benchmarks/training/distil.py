"""Layer-wise distillation of a hybrid from the trained model that it was built on, in two stages.

Stage 1 trains the new modules alone: their head outputs before W^O shall be the teacher's, and the
labels right. The two networks run side by side, each on its own hidden states, without dropout.
Stage 2 trains all weights on the labels. The budget is counted in samples seen, so that whatever is
compared has seen equally much: a student whose modules have nothing to train, and one that replaces
nothing (the teacher trained on), spend all of it in stage 2.

Source: S2S (arXiv 2605.18865) and the code its authors published with FAR; the budget is ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from benchmarks.data.batches import AnyBatch, Batch, Split, train_batches
from benchmarks.data.sample import at_most
from benchmarks.training.augment import Augmentation
from benchmarks.training.distil_losses import (
    HALTING_WEIGHT,
    halting_loss,
    hidden_loss,
    logit_loss,
)
from benchmarks.training.evaluate import accuracy, predict
from benchmarks.training.loop import (
    REPORT_EVERY,
    Sums,
    adamw,
    descend,
    keep_ratio,
    learning_rate,
    repeatable,
    task_loss,
)
from benchmarks.training.record import EpochRecord, TrainingRecord

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.data.load import AnyData
    from benchmarks.training.loop import Report
    from benchmarks.training.recipe import Recipe
    from models.hybrid import Hybrid
    from models.interface import Classifier, ClassifierOutput

PARTS = 10
"""The student is validated after each of so many equal parts of its samples."""

COURSE_ROWS = 1000
"""Most validation rows of these checks, a fixed sample of the split."""


def distil(
    student: Hybrid,
    teacher: Any,
    data: AnyData,
    recipe: Recipe,
    seed: int,
    report: Report | None = None,
) -> TrainingRecord:
    """Trains a student in place with what its configuration says of budget, stages and losses.

    The outcome depends on the arguments alone, as in `loop.train`. The teacher stays as it is.

    Args:
        student: with the teacher's weights but for its new modules.
        teacher: trained.
        data: as `loop.train` takes it.
        recipe: batch size where the student declares none, warm-up (of each stage), weight decay,
            clipping, augmentation and label smoothing; its epochs and learning rate are not used.
        seed: of order, augmentation and dropout.
        report: called every few steps; an epoch is a tenth of the samples.

    Returns:
        One record for each tenth of the samples, less where one step passes several.

    Raises:
        UsageError: the data set has no training rows.
        DivergedError: a loss that is not finite; names stage and step.
    """
    with repeatable(data, seed):
        run = _Run(student, teacher, data, recipe, seed, report or (lambda _: None))
        first, second = stages(student)
        modes = {id(module): module.training for module in teacher.modules()}
        try:
            run.stage_1(first)
            run.stage_2(second)
        finally:
            for module in teacher.modules():
                module.training = modes[id(module)]
    student.eval()
    return TrainingRecord(tuple(run.records))


def stages(student: Hybrid) -> tuple[int, int]:
    """Samples of stage 1 and of stage 2."""
    config = student.config
    first = round(config.samples * config.stage1_share) if student.new_parameters() else 0
    return first, config.samples - first


class _Run:
    """One distillation: the state that both stages share."""

    def __init__(
        self,
        student: Hybrid,
        teacher: Any,
        data: AnyData,
        recipe: Recipe,
        seed: int,
        report: Report,
    ) -> None:
        self.student, self.teacher = student, teacher
        self.config, self.seed, self.report = student.config, seed, report
        self.recipe = recipe = replace(
            recipe, batch_size=self.config.batch_size or recipe.batch_size
        )
        order = torch.Generator().manual_seed(seed)
        self.batches = _endless(data.train, recipe.batch_size, order)
        self.augmentation = Augmentation(recipe, data, seed)
        self.checks = at_most(data.validation, COURSE_ROWS)
        self.records: list[EpochRecord] = []
        self.seen = self.step = self.part = 0
        self._start_part()

    def stage_1(self, samples: int) -> None:
        """Trains the new modules alone."""
        if samples == 0:
            return
        new = {id(parameter) for parameter in self.student.new_parameters()}
        frozen = [p for p in self.student.parameters() if p.requires_grad and id(p) not in new]
        pairs = self._pairs()
        try:
            for parameter in frozen:
                parameter.requires_grad_(False)
            for pair in pairs:
                for mixer in pair:
                    mixer.capture = True
            self._stage(1, samples, self.config.stage1_lr)
        finally:
            for parameter in frozen:
                parameter.requires_grad_(True)
            for pair in pairs:
                for mixer in pair:
                    mixer.capture, mixer.captured = False, None

    def stage_2(self, samples: int) -> None:
        """Trains all weights."""
        if samples > 0:
            self._stage(2, samples, self.config.stage2_lr)

    def _stage(self, stage: int, samples: int, peak_lr: float) -> None:
        recipe = replace(self.recipe, peak_lr=peak_lr)
        parameters = [p for p in self.student.parameters() if p.requires_grad]
        optimizer = adamw(self.student, recipe)
        steps = math.ceil(samples / recipe.batch_size)
        seen = 0
        self._set_modes(stage)
        while seen < samples:
            batch = _first(next(self.batches), samples - seen)
            # a pass ends with a smaller batch: the schedule goes by samples
            step = seen // recipe.batch_size
            lr = learning_rate(step, steps, recipe)
            for group in optimizer.param_groups:
                group["lr"] = lr
            inputs, targets = self.augmentation(batch)
            output, parts = self._losses(stage, batch, inputs, targets)
            where = f"stage {stage}, step {step + 1} of {steps}"
            lower = f"stage{stage}_lr than {peak_lr:g}"
            loss = descend(optimizer, parameters, parts, recipe.clip, where, lower)
            right = (output.logits.detach().argmax(dim=1) == batch.labels).sum().item()
            self.sums.add(parts | {"total": loss}, int(right), len(batch))
            seen += len(batch)
            self._count(len(batch), stage, lr)

    def _losses(
        self, stage: int, batch: AnyBatch, inputs: tuple[Any, ...], targets: Tensor
    ) -> tuple[ClassifierOutput, dict[str, Tensor]]:
        """The student's output and its weighted loss terms."""
        config = self.config
        taught = None
        if stage == 1 or config.logit_weight > 0:
            with torch.no_grad():
                taught = self.teacher(*inputs)
        tokens = taught.tokens if taught is not None and stage == 1 else None
        output = (
            self.student(*inputs) if tokens is None else self.student(*inputs, keep=tokens.keep)
        )
        task = task_loss(output.logits, targets, self.recipe)
        if stage == 2:
            parts = {"task": task}
        else:
            positions = ~batch.key_padding_mask if isinstance(batch, Batch) else None
            hidden = [
                hidden_loss(
                    _captured(own),
                    _captured(other),
                    positions if tokens is None else tokens.keep[:, layer],
                    config.hidden_loss,
                )
                for layer, (own, other) in zip(config.replace, self._pairs(), strict=True)
            ]
            parts = {
                "hidden": config.hidden_weight * torch.stack(hidden).sum(),
                "task": config.task_weight * task,
            }
            if tokens is not None:
                parts["halting"] = HALTING_WEIGHT * halting_loss(output.tokens, tokens)
        if taught is not None and config.logit_weight > 0:
            parts["logits"] = config.logit_weight * logit_loss(output.logits, taught.logits)
        return output, parts

    def _pairs(self) -> list[tuple[Any, Any]]:
        """The student's and the teacher's mixers of the replaced layers."""
        own, other = self.student.mixers(), self.teacher.mixers()
        return [(own[layer], other[layer]) for layer in self.config.replace]

    def _set_modes(self, stage: int) -> None:
        self.student.train()
        if stage == 1:
            _without_dropout(self.student)
        _without_dropout(self.teacher)

    def _count(self, n: int, stage: int, lr: float) -> None:
        """Counts a step of n samples; closes the part that it completes."""
        self.seen += n
        self.steps += 1
        self.step += 1
        part = self.seen * PARTS // self.config.samples
        closes = part > self.part
        if closes or self.step % REPORT_EVERY == 0:
            self.report(
                {
                    "step": math.ceil(self.seen / self.recipe.batch_size),
                    "steps": math.ceil(self.config.samples / self.recipe.batch_size),
                    "epoch": max(1, part),
                    "epochs": PARTS,
                    "loss": self.sums.loss("total"),
                    "accuracy": self.sums.mean("right"),
                    "mean_s": None,
                    "mean_k": None,
                }
            )
        if closes:
            self.part = part
            self._record(stage, lr)
            self._start_part()
            self._set_modes(stage)

    def _record(self, stage: int, lr: float) -> None:
        seconds = time.perf_counter() - self.started
        found = predict(self.student, self.checks)
        self.records.append(
            EpochRecord(
                epoch=self.part,
                steps=self.steps,
                seconds=seconds,
                lr=lr,
                losses={name: self.sums.loss(name) for name in self.sums.losses},
                train_accuracy=self.sums.mean("right"),
                validation_accuracy=accuracy(self.checks.labels, found.predicted),
                mean_s=None,
                mean_k=None,
                entropy=None,
                schedules={"stage": float(stage)} | keep_ratio(found),
                samples=self.seen,
            )
        )

    def _start_part(self) -> None:
        # validation restarts these generators; without a new seed every part would draw alike
        self.student.reseed(self.seed * 1000 + self.part + 1)
        self.sums, self.steps = Sums(), 0
        self.started = time.perf_counter()


def _captured(mixer: Any) -> Tensor:
    captured: Tensor = mixer.captured
    return captured


def _without_dropout(model: Classifier) -> None:
    """Training mode, in which tokens that a model halts keep their places, but nothing random."""
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.eval()


def _endless(split: Split, batch_size: int, order: torch.Generator) -> Iterator[AnyBatch]:
    """Pass after pass over the split."""
    while True:
        yield from train_batches(split, batch_size, order)


def _first(batch: AnyBatch, n: int) -> AnyBatch:
    """At most the first n inputs of a batch."""
    if len(batch) <= n:
        return batch
    cut: dict[str, Any] = {
        name: None if values is None else values[:n] for name, values in vars(batch).items()
    }
    return type(batch)(**cut)
