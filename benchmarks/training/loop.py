"""The training loop: one recipe for every model, and the same bits for the same seed."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.data.batches import train_batches
from benchmarks.errors import FrugalbenchError, UsageError
from benchmarks.training.augment import Augmentation
from benchmarks.training.evaluate import accuracy, predict
from benchmarks.training.record import EpochRecord, TrainingRecord

if TYPE_CHECKING:
    from benchmarks.data.load import AnyData
    from benchmarks.training.evaluate import Predictions
    from benchmarks.training.recipe import Recipe
    from models.interface import Classifier, HeadDecisions

Report = Callable[[dict[str, Any]], None]
"""Called with step, steps, epoch, epochs, loss, accuracy, mean_s, mean_k."""

REPORT_EVERY = 10


class DivergedError(FrugalbenchError):
    """The loss became infinite or not a number."""

    exit_code = 1


def train(
    model: Classifier, data: AnyData, recipe: Recipe, seed: int, report: Report | None = None
) -> TrainingRecord:
    """Trains in place, for a fixed number of epochs; the last weights are the result.

    The outcome depends on the arguments alone: dropout, order and the model's own noise are
    seeded here, one thread is used, and the process's random state is left as it was.

    Args:
        model: freshly initialised classifier.
        data: its training split is learned from; its validation split is only looked at.
        recipe: how.
        seed: of dropout, order and noise.
        report: called every few steps.

    Raises:
        UsageError: the data set has no training rows.
        DivergedError: a loss that is not finite; names epoch and step.
    """
    with repeatable(data, seed):
        return _train(model, data, recipe, seed, report or (lambda _: None))


def _train(
    model: Classifier, data: AnyData, recipe: Recipe, seed: int, report: Report
) -> TrainingRecord:
    order = torch.Generator().manual_seed(seed)
    augmentation = Augmentation(recipe, data, seed)
    steps = recipe.epochs * math.ceil(len(data.train) / recipe.batch_size)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(model, recipe)
    epochs: list[EpochRecord] = []
    step = 0
    for epoch in range(1, recipe.epochs + 1):
        model.train()
        # validation restarts these generators; without a new seed every epoch would draw alike
        model.reseed(seed * 1000 + epoch)
        sums = Sums()
        lr = 0.0
        started, first_step = time.perf_counter(), step
        for batch in train_batches(data.train, recipe.batch_size, order):
            lr = learning_rate(step, steps, recipe)
            for group in optimizer.param_groups:
                group["lr"] = lr
            model.set_progress(step / max(1, steps - 1))
            inputs, targets = augmentation(batch)
            output = model(*inputs)
            parts = {"task": task_loss(output.logits, targets, recipe)}
            parts |= model.auxiliary_losses(output)
            step += 1
            where = f"epoch {epoch}, step {step} of {steps}"
            lower = f"recipe.peak_lr than {recipe.peak_lr:g}"
            loss = descend(optimizer, parameters, parts, recipe.clip, where, lower)
            right = (output.logits.detach().argmax(dim=1) == batch.labels).sum().item()
            sums.add(parts | {"total": loss}, int(right), len(batch.labels), output.heads)
            if step % REPORT_EVERY == 0 or step == steps:
                report(
                    {
                        "step": step,
                        "steps": steps,
                        "epoch": epoch,
                        "epochs": recipe.epochs,
                        "loss": sums.loss("total"),
                        "accuracy": sums.mean("right"),
                        "mean_s": sums.get("s"),
                        "mean_k": sums.get("k"),
                    }
                )
        seconds = time.perf_counter() - started
        validation = predict(model, data.validation)
        epochs.append(
            EpochRecord(
                epoch=epoch,
                steps=step - first_step,
                seconds=seconds,
                lr=lr,
                losses={name: sums.loss(name) for name in (*parts, "total")},
                train_accuracy=sums.mean("right"),
                validation_accuracy=accuracy(data.validation.labels, validation.predicted),
                mean_s=sums.get("s"),
                mean_k=sums.get("k"),
                entropy=sums.get("entropy"),
                schedules=model.schedule_state() | keep_ratio(validation),
                samples=epoch * len(data.train),
            )
        )
    model.eval()
    return TrainingRecord(tuple(epochs))


def task_loss(logits: torch.Tensor, targets: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Cross-entropy with labels (batch,), or with weights of the classes (batch, n_classes)."""
    return functional.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)


def descend(
    optimizer: torch.optim.Optimizer,
    parameters: list[nn.Parameter],
    parts: dict[str, torch.Tensor],
    clip: float,
    where: str,
    lower: str,
) -> torch.Tensor:
    """One optimiser step down the sum of the loss parts, which is returned.

    Args:
        optimizer: over `parameters`.
        parameters: whose joint gradient norm is clipped to `clip`.
        parts: loss terms by name.
        clip: largest gradient norm.
        where: which step this is, for the message.
        lower: the learning rate that may have been too high, likewise.

    Raises:
        DivergedError: the loss is not finite.
    """
    loss = torch.stack(list(parts.values())).sum()
    if not math.isfinite(loss.item()):
        found = ", ".join(f"{name} = {part.item():g}" for name, part in parts.items())
        raise DivergedError(
            f"training diverged in {where}: the loss is {loss.item():g} ({found}). "
            f"A lower {lower} may help."
        )
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()
    return loss


def learning_rate(step: int, steps: int, recipe: Recipe) -> float:
    """Linear warm-up to `peak_lr`, then half a cosine to zero.

    Args:
        step: steps already made, from 0.
        steps: all steps of the training.
        recipe: holds `warmup` (share of all steps) and `peak_lr`.
    """
    warm = round(recipe.warmup * steps)
    if step < warm:
        return recipe.peak_lr * ((step + 1) / warm)
    return recipe.peak_lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def adamw(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimiser over what is to be trained, as the recipe says."""
    return torch.optim.AdamW(
        parameter_groups(model, recipe.weight_decay),
        lr=recipe.peak_lr,
        betas=(0.9, recipe.beta2),
        fused=True,
    )


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices, which decay, and norms, biases and embeddings, which do not.

    Biases of several heads or directions may lie stacked; a model names its tables in `undecayed`.
    """
    spared = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    tables: tuple[str, ...] = getattr(model, "undecayed", ())
    for name, parameter in model.named_parameters():
        if name in tables or "bias" in name.rpartition(".")[2]:
            spared.add(id(parameter))
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            matrix = parameter.ndim >= 2 and id(parameter) not in spared
            (decayed if matrix else free).append(parameter)
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]


def keep_ratio(predictions: Predictions) -> dict[str, float]:
    """For the record of a model that halts tokens: the share of patches computed, mean over layers."""
    ratio = predictions.keep_ratio
    return {} if ratio is None else {"keep_ratio": float(ratio.mean())}


class Sums:
    """Running sums over the inputs of one epoch; of each loss part, over those that had it."""

    def __init__(self) -> None:
        self.n = 0
        self.counts: dict[str, int] = defaultdict(int)
        self.losses: dict[str, float] = defaultdict(float)
        self.sums: dict[str, float] = defaultdict(float)

    def add(
        self,
        losses: dict[str, torch.Tensor],
        right: int,
        n: int,
        heads: HeadDecisions | None = None,
    ) -> None:
        """Adds a batch of n inputs, `right` of them recognised; the losses are its means."""
        self.n += n
        self.sums["right"] += right
        for name, loss in losses.items():
            self.counts[name] += n
            self.losses[name] += loss.item() * n
        if heads is not None:
            self.sums["s"] += heads.budget.detach().mean().item() * n
            self.sums["k"] += heads.k.float().mean().item() * n
            self.sums["entropy"] += normalised_entropy(heads.scores.detach()).mean().item() * n

    def loss(self, name: str) -> float:
        """Mean of one loss part."""
        return self.losses[name] / self.counts[name]

    def mean(self, name: str) -> float:
        """Mean of a quantity over all inputs."""
        return self.sums[name] / self.n

    def get(self, name: str) -> float | None:
        """Likewise; None if there was none."""
        return self.mean(name) if name in self.sums else None


def normalised_entropy(p: torch.Tensor) -> torch.Tensor:
    """Entropy over the last dimension divided by its maximum; 0 where there is one entry only."""
    entropy = torch.special.entr(p).sum(dim=-1)
    return entropy / math.log(p.shape[-1]) if p.shape[-1] > 1 else torch.zeros_like(entropy)


@contextmanager
def repeatable(data: AnyData, seed: int) -> Iterator[None]:
    """A training inside gives the same bits each time, and leaves the process's random state alone.

    Raises:
        UsageError: the data set has no training rows.
    """
    if len(data.train) == 0:
        raise UsageError(f"data set '{data.card.name}' has no training rows: nothing to train on")
    # the order of floating-point sums, and so the bits, depend on the number of threads
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
