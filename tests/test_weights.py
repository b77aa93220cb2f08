"""Pretrained weights: their cards, their vocabulary, and how a point starts from them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.catalog import WEIGHTS
from benchmarks.cli.app import run
from benchmarks.data.card import find_card
from benchmarks.data.encoded import FullTexts
from benchmarks.data.identity import data_hash
from benchmarks.data.load import _cut, load_text
from benchmarks.data.vocabulary import encode, pretrained_vocabulary
from benchmarks.data.weights import WeightsCard, holders, load_weights_card, vocabulary_card
from benchmarks.data.weights_files import read_member, weights_available
from benchmarks.errors import DataError, InvalidFileError, UsageError
from benchmarks.planning.keys import artifact_key
from benchmarks.planning.plan import make_plan
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite
from benchmarks.registry import Entry
from benchmarks.running.runner import require_data
from benchmarks.running.store import RecordStore
from benchmarks.training.build import build_model
from benchmarks.training.pretrained import pretrained_state
from models.bert_config import BertConfig

PIECES = ["[PAD]", "a", "b", "##c", "[UNK]", "[CLS]", "[SEP]", "[", "]", "sep"]


def write_wheel(folder: Path, **members: bytes) -> dict[str, Any]:
    """A small package with these files (by name with `_` for the dot), and its `source`."""
    path = folder / "packages" / "tiny-1.0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr("tiny/" + name.replace("_", "."), content)
    return {
        "kind": "package",
        "package": "tiny",
        "version": "1.0",
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def tiny_values(source: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "tiny",
        "title": "made for a test",
        "layout": "bert",
        "provenance": ["random"],
        "licence": {"package": "none", "weights": "none"},
        "source": source,
        "tensors": {"format": "safetensors", "path": "tiny/model.safetensors", "prefix": "enc."},
        "vocabulary": {"path": "tiny/vocab.txt", "size": len(PIECES)},
        "sizes": {"depth": 1, "d_model": 8, "n_heads": 2, "d_ff": 32, "positions": 6},
    }


def tiny_state() -> dict[str, torch.Tensor]:
    """Tensors by transformers' names for the card's sizes."""
    torch.manual_seed(1)
    shapes = {
        "embeddings.word_embeddings.weight": (len(PIECES), 8),
        "embeddings.position_embeddings.weight": (6, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
        "encoder.layer.0.attention.self.query.weight": (8, 8),
        "encoder.layer.0.attention.self.key.weight": (8, 8),
        "encoder.layer.0.attention.self.value.weight": (8, 8),
        "encoder.layer.0.attention.output.dense.weight": (8, 8),
        "encoder.layer.0.intermediate.dense.weight": (32, 8),
        "encoder.layer.0.output.dense.weight": (8, 32),
    }
    norms = ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output")
    state = {name: torch.randn(shape) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if name.startswith("encoder"):
            state[name.replace("weight", "bias")] = torch.randn(shape[0])
    for name in norms:
        state |= {f"{name}.LayerNorm.{part}": torch.randn(8) for part in ("weight", "bias")}
    return state


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsCard:
    """A registered card whose package lies in this test's cache."""
    from safetensors.torch import save

    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path))
    tensors = save({f"enc.{name}": tensor for name, tensor in tiny_state().items()})
    source = write_wheel(tmp_path, vocab_txt="\n".join(PIECES).encode(), model_safetensors=tensors)
    card = WeightsCard.model_validate(tiny_values(source))
    assert WEIGHTS.names()  # they are looked for on first use
    monkeypatch.setitem(WEIGHTS._entries, "tiny", Entry("tiny", lambda: card, "a test", card))
    monkeypatch.setitem(WEIGHTS._values, "tiny", card)
    return card


def tiny_config(**changes: Any) -> BertConfig:
    sizes: dict[str, Any] = {
        "depth": 1,
        "d_model": 8,
        "n_heads": 2,
        "vocab_size": len(PIECES),
        "max_length": 5,
        "pretrained": "tiny",
    }
    return BertConfig(**sizes | changes)


@pytest.mark.parametrize("name", WEIGHTS.names())
def test_cards_are_valid_and_hold_together(name: str) -> None:
    card = WEIGHTS.get(name)
    assert card.sizes.d_model % card.sizes.n_heads == 0
    if card.inputs == "text":
        assert vocabulary_card(card).vocabulary
    assert holders(card)[0] is card
    assert card.provenance
    assert card.licence.weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "gpt"}, "layout: Input should be 'bert', 'dinov2' or 'timm'"),
        ({"layout": "dinov2"}, "card: layout 'dinov2' needs `sizes.patch_size`"),
        ({"vocabulary": None}, "card: layout 'bert' needs `vocabulary`"),
        ({"colour": 1}, "colour: Extra inputs are not permitted"),
        ({"vocabulary": {"size": 3}}, "vocabulary: give either `path` or `of`"),
        ({"name": "other"}, "name: is 'other', but the file says 'tiny'"),
    ],
)
def test_a_wrong_card_is_named_with_its_key(
    tmp_path: Path, change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = tiny_values(write_wheel(tmp_path)) | change
    monkeypatch.setattr("benchmarks.data.weights.read_toml", lambda _: values)
    with pytest.raises(InvalidFileError, match=message):
        load_weights_card(tmp_path / "tiny.toml")


def test_unknown_weights_name_their_neighbours() -> None:
    with pytest.raises(UsageError, match="minilm-l6"):
        pretrained_state("minilm-6")


def test_a_missing_and_an_altered_package_say_what_to_do(tiny: WeightsCard, tmp_path: Path) -> None:
    path = tmp_path / "packages" / tiny.source.file
    with pytest.raises(DataError, match=r"has no readable tiny/nothing"):
        read_member(tiny, "tiny/nothing")
    path.write_bytes(b"altered")
    with pytest.raises(DataError, match=r"altered.*frugalbench fetch tiny"):
        read_member(tiny, "tiny/vocab.txt")
    path.unlink()
    assert not weights_available(tiny)
    with pytest.raises(DataError, match="run `frugalbench fetch tiny`"):
        pretrained_vocabulary("tiny")


def test_the_vocabulary_splits_into_pieces_and_knows_no_spelled_marks(tiny: WeightsCard) -> None:
    ids, empty = encode(pretrained_vocabulary("tiny"), ["A bc", "[SEP]", "", "é"])
    assert ids == [[1, 2, 3], [7, 9, 8], [4], [4]]
    assert empty == [False, False, True, True]


def test_a_vocabulary_of_another_size_is_refused(
    tiny: WeightsCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = b"[PAD]\n[UNK]\n[SEP]\n"
    monkeypatch.setattr("benchmarks.data.vocabulary.read_member", lambda *_: short)
    with pytest.raises(
        DataError, match=r"has 3 different pieces, the card says 10; it lacks \[CLS\]"
    ):
        pretrained_vocabulary("tiny")


def full_texts(*texts: list[int], per_row: int, cls: int) -> FullTexts:
    n = len(texts) // per_row
    return FullTexts(
        row_ids=np.arange(n),
        labels=np.zeros(n, np.int64),
        tokens=np.array([token for text in texts for token in text], np.int32),
        offsets=np.cumsum([0, *map(len, texts)]),
        n_empty=0,
        vocab_size=10,
        sep=6,
        cls=cls,
    )


def test_inputs_are_framed_and_cut_inside_the_frame() -> None:
    single, pair = find_card("rotten-tomatoes"), find_card("sts-b")
    one = _cut(full_texts([1, 2, 3, 3], [1], per_row=1, cls=5), "train", single, 5)
    assert one.tokens.tolist() == [5, 1, 2, 3, 6, 5, 1, 6]
    assert one.offsets.tolist() == [0, 5, 8]
    assert one.segments is None
    assert one.n_truncated == 1
    two = _cut(full_texts([1, 2, 3, 1], [2, 2], [1], [2], per_row=2, cls=5), "train", pair, 7)
    assert two.tokens.tolist() == [5, 1, 2, 6, 2, 2, 6, 5, 1, 6, 2, 6]
    assert two.segments is not None
    assert two.segments.tolist() == [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1]
    assert two.offsets.tolist() == [0, 7, 12]
    assert two.n_truncated == 1
    plain = _cut(full_texts([1, 2, 3, 1], [2, 2], per_row=2, cls=-1), "train", pair, 7)
    assert plain.tokens.tolist() == [1, 2, 3, 1, 6, 2, 2]
    assert plain.n_truncated == 0


def test_hashes_without_a_vocabulary_are_what_they_were() -> None:
    assert data_hash("random-tokens", max_length=64) == RANDOM_TOKENS
    named = data_hash("random-tokens", max_length=64, vocabulary="minilm-l6")
    assert named != RANDOM_TOKENS
    assert named == data_hash("random-tokens", max_length=64, vocabulary="minilm-l3")


RANDOM_TOKENS = "890100103fa02d39"


def test_generated_inputs_stay_inside_the_vocabulary(tiny: WeightsCard) -> None:
    data = load_text("random-tokens", max_length=6, vocabulary="tiny")
    assert data.vocab_size == len(PIECES)
    assert data.test().tokens.max() == len(PIECES) - 1
    assert "in the vocabulary of tiny" in data.note


def test_fetch_plan_and_run_know_what_a_suite_starts_from(
    tiny: WeightsCard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "bert.toml"
    suite.write_text(SUITE)

    def said(*arguments: str) -> str:
        assert run([*arguments]) == 0
        return capsys.readouterr().out

    assert json.loads(said("plan", str(suite), "--json"))["weights_to_fetch"] == []
    assert "tiny: here and intact" in said("fetch", str(suite))
    (tmp_path / "packages" / tiny.source.file).unlink()
    assert "weights to fetch first: tiny (0 MB): `frugalbench fetch tiny`" in said(
        "plan", str(suite)
    )
    with pytest.raises(DataError, match="data not here yet: tiny"):
        require_data(make_plan(load_suite(str(suite)), RecordStore(tmp_path / "records")))


SUITE = """
schema = 1
title = "A test"
[[sweep]]
name = "cost"
datasets = ["random-tokens"]
max_length = 5
trained = false
meters = ["flops"]
params = { depth = 1, d_model = 8, n_heads = 2, pretrained = "tiny" }
variants = [{ label = "bert", model = "bert" }]
"""


def test_keys_hold_the_packages_hash(tiny: WeightsCard, monkeypatch: pytest.MonkeyPatch) -> None:
    point = Point("bert", {"pretrained": "tiny"}, "random-tokens", 5)
    assert artifact_key(point) != artifact_key(replace(point, params={}))
    first = artifact_key(point)
    borrowed = tiny.model_copy(
        update={"source": tiny.source.model_copy(update={"sha256": "0" * 64})}
    )
    # even if the vocabulary is another package's, so that the data hash stays
    monkeypatch.setattr("benchmarks.planning.keys._data_hash", lambda _: "same")
    before = artifact_key(point)
    monkeypatch.setitem(WEIGHTS._values, "tiny", borrowed)
    assert len({first, before, artifact_key(point)}) == 3


def test_a_model_starts_from_the_weights_and_its_head_from_the_seed(tiny: WeightsCard) -> None:
    models = [build_model(tiny_config(), seed) for seed in (0, 0, 1)]
    fresh = build_model(tiny_config(), 0, pretrained=False)
    words = tiny_state()["embeddings.word_embeddings.weight"]
    assert all(torch.equal(model.token.weight, words) for model in models)
    assert not torch.equal(fresh.token.weight, words)
    assert torch.equal(models[0].head.weight, models[1].head.weight)
    assert torch.equal(models[0].head.weight, fresh.head.weight)
    assert not torch.equal(models[0].head.weight, models[2].head.weight)


def test_weights_of_another_shape_name_the_tensor(tiny: WeightsCard) -> None:
    with pytest.raises(
        UsageError,
        match=r"pretrained = 'tiny': .*intermediate.dense.weight is \(32, 8\) .*needs \(16, 8\)",
    ):
        build_model(tiny_config(d_ff=16), 0)


def test_the_card_says_beforehand_what_does_not_fit(tiny: WeightsCard) -> None:
    sizes = {"inputs": "text", "depth": 1, "d_model": 8, "n_heads": 2, "head_dim": 4, "d_ff": 32}
    assert tiny.misfit(sizes, 6) is None
    assert tiny.misfit(sizes, 7) == "max_length = 7, but 'tiny' has 6 positions"
    assert tiny.misfit(sizes | {"head_dim": 8}, 6) == "head_dim = 8, but 'tiny' has 4"
    of_images = tiny.misfit(sizes | {"inputs": "image"}, 6)
    assert of_images == "the model reads images, but 'tiny' texts"
