"""How the models of a suite were trained, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.reporting.text import counted, listing
from benchmarks.training.recipe import Recipe

if TYPE_CHECKING:
    from benchmarks.reporting.view import View


def recipe(view: View) -> str:
    """The recipe, with what a sweep's axis varies of it named so; and which splits are read."""
    values = Recipe.from_declared(view.suite.recipe)
    trained = [v for v in view.variants if v.trained]
    varied = {name for v in trained for name in v.axes}
    epochs = "epochs as tabled" if "epochs" in varied else counted(values.epochs, "epoch")
    rate = "as tabled" if "peak_lr" in varied else f"{values.peak_lr:g}"
    tuned = {"epochs", "peak_lr"} & varied
    lead = "One recipe for all trained models"
    if any(v.is_student for v in view.variants):
        lead = "One recipe for all models that are trained without a teacher"
    if not tuned and not any(v.reads_images for v in trained):
        lead += ", tuned on the dense model's validation accuracy"
    others = "".join(_other_recipes(view))
    read = (
        "The test split is read once, after training."
        if view.plans(trained, "accuracy")
        else "The test split is not read."
    )
    return (
        f"{lead}: AdamW, {epochs}, batch {values.batch_size}, peak learning rate {rate} after "
        f"{values.warmup:.0%} warm-up, cosine to zero, weight decay {values.weight_decay:g}, gradients "
        f"clipped at {values.clip:g}{_changed_images(values)}.{others} {read}"
    )


def _other_recipes(view: View) -> Iterator[str]:
    """What sweeps change of the suite's recipe; those that change the same share a sentence."""
    found: dict[str, list[str]] = {}
    for sweep in view.suite.sweeps:
        if sweep.recipe:
            changed = listing([f"{name} {value}" for name, value in sweep.recipe.items()])
            found.setdefault(changed, []).append(f"`{sweep.name}`")
    for changed, sweeps in found.items():
        yield f" In {listing(sweeps)}: {changed}."


def _changed_images(recipe: Recipe) -> str:
    """What is done to training images and labels, with a comma before it; empty: nothing."""
    parts = {
        f"training images changed by {recipe.augment}": recipe.augment != "none",
        f"mixup {recipe.mixup:g}": recipe.mixup > 0,
        f"cutmix {recipe.cutmix:g}": recipe.cutmix > 0,
        f"label smoothing {recipe.label_smoothing:g}": recipe.label_smoothing > 0,
    }
    return "".join(f", {text}" for text, there in parts.items() if there)


def distillation(view: View) -> str:
    """The students' stages, as far as all of them have the same."""
    configs = [
        {**MODELS.get(v.model).declarable(), **view.config(v)}
        for v in view.variants
        if v.is_student
    ]
    texts = []
    for name, text in (
        ("samples", "{:,} samples in all"),
        ("batch_size", "in batches of {}"),
        ("stage1_share", "{:.0%} of them in stage 1, which trains the new modules alone"),
        ("stage1_lr", "at a peak learning rate of {:g}"),
        ("stage2_lr", "then all weights at {:g}"),
        ("hidden_weight", "distance of the head outputs weighed {:g}"),
        ("logit_weight", "soft labels {:g}"),
    ):
        # a student without a batch size of its own takes the recipe's
        values = sorted({config[name] for config in configs} - {None})
        shown = " or ".join(
            text.format(value) if not i else f"{value:,g}" for i, value in enumerate(values)
        )
        texts += [shown] if shown else []
    as_recipe = [
        *(["batch size"] if any(config["batch_size"] is None for config in configs) else []),
        "weight decay",
        "changes of images",
    ]
    return (
        f"Students: {', '.join(texts)}; {listing(as_recipe, by=' and ')} as in the recipe. A "
        "student without new weights, and the teacher trained on, get all samples in stage 2."
    )
