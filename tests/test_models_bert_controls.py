"""The controls in BERT's encoder: they are BERT where they take nothing away."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.planning.expand import expand
from benchmarks.planning.plan import make_plan
from benchmarks.planning.suite import load_suite
from benchmarks.running.store import RecordStore
from models.bert import Bert
from models.bert_budgetformer import BertBudgetFormer
from models.bert_budgetformer_config import BertBudgetFormerConfig
from models.bert_config import BertConfig
from models.bert_random_at_test import BertRandomAtTest
from models.bert_random_at_test_config import BertRandomAtTestConfig
from models.bert_random_trained import BertRandomTrained
from models.bert_random_trained_config import BertRandomTrainedConfig
from models.bert_static_heads import BertStaticHeads
from models.bert_static_heads_config import BertStaticHeadsConfig
from models.config import TrainedSummary
from models.interface import Classifier

SIZES: dict[str, Any] = {
    "depth": 2,
    "d_model": 16,
    "n_heads": 4,
    "vocab_size": 40,
    "n_classes": 3,
    "max_length": 9,
    "n_segments": 2,
}
CONFIGS: tuple[type[BertConfig], ...] = (
    BertBudgetFormerConfig,
    BertRandomAtTestConfig,
    BertRandomTrainedConfig,
    BertStaticHeadsConfig,
)


def summary(k: int, **params: Any) -> TrainedSummary:
    row = [int(heads == k) * 7 for heads in range(SIZES["n_heads"] + 1)]
    source = dataclasses.asdict(BertBudgetFormerConfig(**SIZES, **params))
    return TrainedSummary(source, [row] * SIZES["depth"], 1.0, [5])


def batch() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, SIZES["vocab_size"], (6, 9), generator=generator)
    mask = torch.arange(9) >= torch.tensor([9, 7, 9, 1, 4, 9]).unsqueeze(1)
    return {"input_ids": ids, "key_padding_mask": mask, "segment_ids": ids % 2}


def logits(model: Classifier) -> Tensor:
    model.eval()
    model.reseed(1)
    with torch.no_grad():
        found: Tensor = model(**batch()).logits
        return found


@pytest.fixture
def bert() -> Bert:
    torch.manual_seed(0)
    return Bert(BertConfig(**SIZES))


@pytest.mark.parametrize("config", CONFIGS)
def test_the_sizes_are_minilm_s_by_default(config: type[BertConfig]) -> None:
    usual = BertConfig()
    made = config()
    assert (made.depth, made.d_model, made.n_heads) == (usual.depth, usual.d_model, usual.n_heads)
    assert {"pretrained", "pooling"} <= set(config.declarable())
    # beside controllers, the same work: single texts have token types too, and pooling may be free
    for pooling in ("mean", "cls"):
        mine, theirs = (c(pooling=pooling).macs(8, [12] * 6) for c in (config, BertConfig))
        assert mine.total - mine.controllers == theirs.total
        assert mine.elementwise >= theirs.elementwise


def test_random_heads_are_bert_where_all_are_drawn(bert: Bert) -> None:
    config = BertRandomTrainedConfig(**SIZES).resolve(summary(k=4))
    model = BertRandomTrained(config)
    model.load_state_dict(bert.state_dict())
    assert torch.equal(logits(model), logits(bert))
    fewer = BertRandomTrained(BertRandomTrainedConfig(**SIZES).resolve(summary(k=2)))
    fewer.load_state_dict(bert.state_dict())
    assert not torch.allclose(logits(fewer), logits(bert))
    fewer.head_mode = "masked"
    masked = logits(fewer)
    fewer.head_mode = "hard"
    torch.testing.assert_close(logits(fewer), masked)


def test_random_heads_at_test_take_over_an_adaptive_bert() -> None:
    torch.manual_seed(0)
    adaptive = BertBudgetFormer(BertBudgetFormerConfig(**SIZES, pooling="cls"))
    config = BertRandomAtTestConfig(**SIZES).resolve(summary(2, pooling="cls", s_max=0.4))
    assert (config.pooling, config.s_max) == ("cls", 0.4)
    model = BertRandomAtTest(config)
    model.load_state_dict(adaptive.state_dict())
    assert not torch.allclose(logits(model), logits(adaptive))
    for found in (model, adaptive):
        found.head_mode = "soft"
    assert torch.equal(logits(model), logits(adaptive))


def test_static_heads_are_the_fine_tuned_bert_where_all_are_kept(bert: Bert) -> None:
    def static(k: int) -> BertStaticHeads:
        model = BertStaticHeads(BertStaticHeadsConfig(**SIZES).resolve(summary(k)))
        model.start_from(bert.state_dict())
        return model

    # static heads gather weights by importance even where all are kept, so sums go in its order
    torch.testing.assert_close(logits(static(4)), logits(bert))
    few = static(1)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    gradients = few.head_gradients(**batch(), labels=labels)
    assert gradients.shape == (6, 2, 4)
    few.set_importance(gradients.abs().mean(0))
    assert not torch.allclose(logits(few), logits(bert))


def test_the_budget_suite_plans_them_beside_the_adaptive_bert(tmp_path: Path) -> None:
    suite = load_suite("budget")
    points = [p.point for p in expand(suite).points if p.sweep == "pretrained"]
    assert {point.vocabulary for point in points} == {"minilm-l6"}
    assert {point.label for point in points} == {
        "minilm", "minilm-budget-low",
        "minilm-random-trained", "minilm-random-at-test", "minilm-static",
    }  # fmt: skip
    plan = make_plan(suite, RecordStore(tmp_path), only=["pretrained"])
    place = {task.task_id: i for i, task in enumerate(plan.point_tasks)}
    for task in plan.point_tasks:
        assert all(place[need] < place[task.task_id] for need in task.needs)
