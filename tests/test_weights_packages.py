"""The packaged MiniLMs themselves, against transformers with the same weights; no network."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from benchmarks.data.vocabulary import encode, pretrained_vocabulary
from benchmarks.data.weights import find_weights
from benchmarks.data.weights_files import read_member, weights_available
from benchmarks.training.build import build_model
from benchmarks.training.pretrained import pretrained_state
from models.bert_budgetformer_config import BertBudgetFormerConfig
from models.bert_config import BertConfig
from models.config import EncoderConfig
from models.interface import Classifier

pytestmark = [pytest.mark.data, pytest.mark.slow]

SENTENCES = [
    "The ferry leaves at noon.",
    "A ferry leaves the harbour around noon, doesn't it?",
    "the film's café scenes — shot in one take, in 1999 — are unexpectedly moving .",
    "Nobody had watered the plants for weeks.",
    "antidisestablishmentarianism",
]


def need(name: str) -> None:
    card = find_weights(name)
    if not weights_available(card):
        pytest.skip(f"{card.source.file} is not here: frugalbench fetch {name}")
    if card.tensors.format == "onnx":
        pytest.importorskip("onnx", reason=f"{name} is an ONNX file")


@cache
def transformers_model(name: str) -> Any:
    transformers = pytest.importorskip(
        "transformers", reason="the independent BERT to compare with"
    )
    sizes = find_weights(name).sizes
    model = transformers.BertModel(
        transformers.BertConfig(num_hidden_layers=sizes.depth, hidden_size=sizes.d_model,
            num_attention_heads=sizes.n_heads, intermediate_size=sizes.d_ff),
        add_pooling_layer=False,
    )  # fmt: skip
    state = pretrained_state(name)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing
    assert all("pooler" in key or "position_ids" in key for key in unexpected)
    return model.eval()


def batch_of(texts: list[str], name: str, *, pairs: bool) -> dict[str, torch.Tensor]:
    """The texts as BERT takes them: one by one, or the first beside each other one."""
    tokenizer = pretrained_vocabulary(name)
    ids, _ = encode(tokenizer, texts)
    cls, sep = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    rows = [[cls, *text, sep] for text in ids]
    segments = [[0] * len(row) for row in rows]
    if pairs:
        segments = [[0] * len(rows[0]) + [1] * (len(row) - 1) for row in rows[1:]]
        rows = [rows[0] + row[1:] for row in rows[1:]]
    longest = max(map(len, rows))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    batch = {"input_ids": padded, "key_padding_mask": torch.arange(longest) >= lengths[:, None]}
    if pairs:
        types = [row + [0] * (longest - len(row)) for row in segments]
        batch["segment_ids"] = torch.tensor(types)
    return batch


def model_of(config: Callable[..., EncoderConfig], name: str, **changes: Any) -> Classifier:
    sizes = find_weights(name).sizes
    made = config(depth=sizes.depth, pretrained=name, vocab_size=30522, max_length=64, **changes)
    return build_model(made, 0).eval()


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("name", ["minilm-l6", "minilm-l3"])
def test_hidden_states_of_real_sentences_are_those_of_transformers(name: str, pairs: bool) -> None:
    need(name)
    other = transformers_model(name)
    model = model_of(BertConfig, name, n_segments=1 + pairs)
    batch = batch_of(SENTENCES, name, pairs=pairs)
    seen: list[torch.Tensor] = []
    model.norm.register_forward_hook(lambda *a: seen.append(a[2]))  # type: ignore[union-attr, operator]
    for block in model.blocks:  # type: ignore[union-attr]
        block.register_forward_hook(lambda *a: seen.append(a[2][0]))
    with torch.no_grad():
        model(**batch)
        expected = other(
            input_ids=batch["input_ids"],
            attention_mask=(~batch["key_padding_mask"]).long(),
            token_type_ids=batch.get("segment_ids"),
            output_hidden_states=True,
        ).hidden_states
    kept = ~batch["key_padding_mask"]
    assert len(seen) == len(expected) == find_weights(name).sizes.depth + 1
    for ours, theirs in zip(seen, expected, strict=True):
        torch.testing.assert_close(ours[kept], theirs[kept], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["minilm-l6", "minilm-l3"])
def test_every_pretrained_head_at_unit_gate_changes_nothing(name: str) -> None:
    need(name)
    dense, adaptive = model_of(BertConfig, name), model_of(BertBudgetFormerConfig, name, fixed_k=12)
    adaptive.load_state_dict(dense.state_dict(), strict=False)  # the fresh linear head
    batch = batch_of(SENTENCES, name, pairs=False)
    with torch.no_grad():
        assert torch.equal(adaptive(**batch).logits, dense(**batch).logits)


def test_similar_sentences_lie_close_and_others_do_not() -> None:
    need("minilm-l3")
    model = model_of(BertConfig, "minilm-l3")
    pooled: list[torch.Tensor] = []
    model.head.register_forward_pre_hook(lambda _, args: pooled.append(args[0]))  # type: ignore[union-attr, operator]
    with torch.no_grad():
        model(**batch_of(SENTENCES, "minilm-l3", pairs=False))
    vectors = torch.nn.functional.normalize(pooled[0], dim=1)
    assert vectors[0] @ vectors[1] > 0.8
    assert vectors[0] @ vectors[3] < 0.3


def test_word_pieces_are_those_of_the_packages_own_tokenizer() -> None:
    need("minilm-l6")
    from tokenizers import Tokenizer

    card = find_weights("minilm-l6")
    content = read_member(card, card.tensors.path.replace("model.safetensors", "tokenizer.json"))
    values = json.loads(content) | {"truncation": None, "padding": None}
    own = Tokenizer.from_str(json.dumps(values))
    assert encode(pretrained_vocabulary("minilm-l6"), SENTENCES)[0] == [
        item.ids for item in own.encode_batch(SENTENCES, add_special_tokens=False)
    ]
