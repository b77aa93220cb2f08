"""Tiny teachers and their students, with squares and texts to distil on."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from torch import nn

from benchmarks.data.image_data import ImageData
from benchmarks.data.images import ImageSplit
from benchmarks.data.load import EncodedSplit
from benchmarks.training.build import build_model
from benchmarks.training.recipe import Recipe
from benchmarks.training.start import start_from_base
from models.avit_config import AViTConfig
from models.bert_config import BertConfig
from models.bert_hybrid_config import BertHybridConfig
from models.config import TrainedSummary
from models.vit_config import ViTConfig
from models.vit_hybrid_config import ViTHybridConfig

SIZES: dict[str, Any] = {"depth": 3, "d_model": 12, "n_heads": 3}


OF_DATA: dict[str, Any] = {"channels": 1, "max_length": 8, "n_classes": 3}


VIT = ViTConfig(**SIZES, **OF_DATA, patch_size=2)


AVIT = AViTConfig(**SIZES, **OF_DATA, patch_size=2, keep_ratio=0.6)


BERT = BertConfig(**SIZES, vocab_size=26, n_classes=3, max_length=9)


RECIPE = Recipe(batch_size=16)


def image_split(name: str, n: int, seed: int) -> ImageSplit:
    """Squares of noise; the label says which third of the rows is bright."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, n)
    pixels = random.integers(0, 150, (n, 1, 8, 8))
    for image, label in zip(pixels, labels, strict=True):
        image[0, 3 * label : 3 * label + 2] += 100
    return ImageSplit(
        name=name,
        row_ids=np.arange(n, dtype=np.int64),
        pixels=pixels.astype(np.uint8),
        labels=labels.astype(np.int64),
        mean=np.full(1, 0.3, np.float32),
        std=np.full(1, 0.2, np.float32),
    )


def image_data(n_train: int = 100) -> ImageData:
    return ImageData(
        card=cast(Any, SimpleNamespace(name="squares", run_name="squares", source=None)),
        classes=("a", "b", "c"),
        channels=1,
        image_size=8,
        train=image_split("train", n_train, 0),
        validation=image_split("validation", 40, 1),
        hash="abc",
        partial=False,
        note="",
        _test=image_split("test", 40, 2),
    )


def text_data() -> Any:
    def split(n: int, seed: int) -> EncodedSplit:
        random = np.random.default_rng(seed)
        lengths, labels = random.integers(1, 9, n), random.integers(0, 3, n)
        tokens = [random.integers(2, 10, m) + 8 * y for m, y in zip(lengths, labels, strict=True)]
        return EncodedSplit(
            name="train",
            row_ids=np.arange(n, dtype=np.int64),
            tokens=np.concatenate(tokens).astype(np.int32),
            segments=None,
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            labels=labels.astype(np.int64),
        )

    card = SimpleNamespace(name="texts", run_name="texts")
    return SimpleNamespace(
        card=card, classes=("a", "b", "c"), train=split(100, 0), validation=split(40, 1)
    )


def teacher_of(config: Any) -> Any:
    teacher: Any = build_model(config, 0)
    if isinstance(config, AViTConfig):
        start_from_base(teacher, build_model(VIT, 0).state_dict(), image_data())
    return teacher.eval()


def student_of(teacher: Any, **declared: Any) -> Any:
    config = teacher.config
    kind: Any = BertHybridConfig if config.inputs == "text" else ViTHybridConfig
    given = {"vocab_size": 26} if config.inputs == "text" else {"channels": 1}
    made = kind(**declared, **given, n_classes=3, max_length=config.max_length).resolve(
        TrainedSummary(params=asdict(config), k_histogram=None, mean_macs=1.0)
    )
    student: Any = build_model(made, 1)
    student.load_teacher(teacher.state_dict())
    return student


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}
