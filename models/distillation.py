"""What a student declares: the layers it replaces, by what, and how it is distilled. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from models.config import ModelConfig
from models.mixers import names

HiddenLoss = Literal["mse", "cosine"]


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """Fields that every hybrid's configuration has beside its teacher's.

    The learning rates keep the 10 : 1 ratio of the authors' code, the shares of the samples its 2 : 1
    ratio of epochs (S2S, arXiv 2605.18865); they were chosen for small models and budgets on
    MNIST-5k's validation split. A logit term is not theirs.

    Attributes:
        replace: layers whose attention is replaced, counted from 0, in ascending order.
        mixer: kind of what replaces it, see `models.mixers.names`.
        bidirectional, state, conv, kernel_size: options of the kinds that have them.
        samples: inputs that the student is trained on, over both stages; 0: it is not trained.
        stage1_share: share of them in stage 1, which trains the new modules alone; stage 2, which
            trains all weights, gets the rest, or everything if there is nothing new to train.
        stage1_lr, stage2_lr: highest learning rates.
        batch_size: inputs per step; None: the recipe's. Where samples are few, small batches teach more
            (on MNIST-5k, all of 4 layers replaced, 6,000 samples: 0.72 at 16, 0.46 at 64).
        hidden_weight: of the head outputs' distance from the teacher's, summed over the replaced
            layers; in stage 1.
        hidden_loss: that distance: mean squared difference, or one minus the cosine over channels.
        task_weight: of the cross-entropy with the labels; in stage 1 (in stage 2 it is 1).
        logit_weight: of the divergence from the teacher's soft labels; in both stages.
    """

    replace: tuple[int, ...] = ()
    mixer: str = "bilstm"
    bidirectional: bool = True
    state: int = 128
    conv: int = 4
    kernel_size: int = 7
    samples: int = 0
    stage1_share: float = 2 / 3
    stage1_lr: float = 5e-3
    stage2_lr: float = 5e-4
    batch_size: int | None = None
    hidden_weight: float = 1.0
    hidden_loss: HiddenLoss = "mse"
    task_weight: float = 1.0
    logit_weight: float = 0.0

    @property
    def mixer_options(self) -> dict[str, Any]:
        """The options that the kind has.

        Raises:
            ValueError: no such kind, or a value for an option that it has not.
        """
        kind = names.find(self.mixer)
        given = {
            name: getattr(self, name)
            for name in OPTIONS
            if name in kind.options or getattr(self, name) != getattr(Distillation, name)
        }
        return names.resolve(self.mixer, given)

    def training_epochs(self, epochs: int) -> int:
        """See `ModelConfig.training_epochs`; the budget is counted in samples, not epochs."""
        del epochs
        return 0

    def check_distillation(self) -> None:
        """Raises ValueError for the first value that is out of range."""
        _ = self.mixer_options
        for before, index in zip((-1, *self.replace), self.replace, strict=False):
            if index < 0:
                raise ValueError(f"replace: there is no layer {index}; they are counted from 0")
            if index == before:
                raise ValueError(f"replace: layer {index} is named twice")
            if index < before:
                raise ValueError(
                    f"replace: layer {index} stands after {before}; give them in ascending order: "
                    f"{sorted(set(self.replace))}"
                )
        if self.samples < 0:
            raise ValueError(f"samples must not be negative, not {self.samples}")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {self.batch_size}")
        if not 0 <= self.stage1_share <= 1:
            raise ValueError(f"stage1_share must lie in [0, 1], not {self.stage1_share}")
        for name in ("stage1_lr", "stage2_lr"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("hidden_weight", "task_weight", "logit_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.hidden_weight == self.task_weight == 0:
            raise ValueError(
                "hidden_weight and task_weight are both 0: stage 1 would learn nothing"
            )
        if self.hidden_loss not in get_args(HiddenLoss):
            raise ValueError(f"hidden_loss must be 'mse' or 'cosine', not {self.hidden_loss!r}")


OPTIONS = ("bidirectional", "state", "conv", "kernel_size")
"""Fields that are options of mixers."""

OWN = frozenset(f.name for f in fields(Distillation))
"""Fields of the student itself; all others are its teacher's."""


def taken_from(config: ModelConfig, teacher: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a student's configuration takes over from its teacher's.

    Args:
        config: the student's, a dataclass; what it declares itself must be as in the teacher.
        teacher: the teacher's full configuration.

    Raises:
        ValueError: the teacher is a hybrid itself or of another kind, or a declared value differs.
    """
    if "replace" in teacher:
        raise ValueError("the teacher is a hybrid itself; give it a model that replaces nothing")
    known = {f.name for f in fields(config)}
    foreign = next((name for name in teacher if name not in known), None)
    if foreign is not None:
        raise ValueError(f"the teacher is no such model: it has {foreign}, and a student has not")
    taken: dict[str, Any] = {}
    for f in fields(config):
        if f.name in OWN or f.name == "pretrained":  # whose weights come with the teacher's
            continue
        if f.name not in teacher:
            if f.name in config.declarable():
                raise ValueError(f"the teacher is no such model: it has no {f.name}")
            continue
        value, declared = teacher[f.name], getattr(config, f.name)
        if declared not in (f.default, value):
            raise ValueError(
                f"{f.name} = {declared!r}, but the teacher has {value!r}; leave it out, or train "
                "the teacher so"
            )
        taken[f.name] = value
    return taken


def require_fit(config: Any) -> None:
    """Checks a hybrid's whole configuration.

    Raises:
        ValueError: a layer to replace that it has not, or sizes that the mixer cannot have.
    """
    names.check_layers(config.replace, config.depth)
    if config.replace:
        sizes = (config.d_model, config.n_heads, config.width_of_head)
        names.check(config.mixer, *sizes, config.mixer_options)
