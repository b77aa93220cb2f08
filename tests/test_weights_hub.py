"""Pretrained weights on the hub: first download and lock, later ones, what goes wrong. The hub is made up."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors.torch import save

from benchmarks.catalog import WEIGHTS
from benchmarks.cli import app
from benchmarks.data.weights import WeightsCard, find_weights, holders, load_weights_card
from benchmarks.data.weights_files import fetch_weights, weights_path, weights_state
from benchmarks.errors import DataError, InvalidFileError, UsageError
from benchmarks.planning.keys import artifact_key
from benchmarks.planning.points import Point
from benchmarks.registry import Entry
from benchmarks.running.files import sha256_of
from benchmarks.training.build import build_model
from benchmarks.training.pretrained import pretrained_state
from models.vit import ViT
from models.vit_config import ViTConfig

REVISION = "0123456789abcdef0123456789abcdef01234567"
FILE = "model.safetensors"
CLASSES = 7
CONFIG = ViTConfig(
    depth=1, d_model=8, n_heads=2, patch_size=4, pretrained="tiny", max_length=8, n_classes=CLASSES
)
DEIT = ("deit-base", "deit-small", "deit-tiny")


class Hub:
    """Stands in for the hub: one repository with one file."""

    def __init__(self) -> None:
        torch.manual_seed(3)
        made = ViT(replace(CONFIG, pretrained=None))
        self.state = {name: torch.randn_like(tensor) for name, tensor in made.state_dict().items()}
        self.content = save(self.state)
        self.revision = REVISION
        self.error: Exception | None = None
        self.downloads: list[str] = []

    def model_info(self, repo: str) -> Any:
        assert repo == "some/tiny"
        if self.error:
            raise self.error
        return types.SimpleNamespace(sha=self.revision)

    def download(self, repo: str, name: str, *, revision: str, local_dir: Path) -> str:
        if self.error:
            raise self.error
        assert (repo, name) == ("some/tiny", FILE)
        self.downloads.append(revision)
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / name).write_bytes(self.content)
        return str(local_dir / name)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "cache"))
    made = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: made)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.download)
    return made


CARD = """
schema = 1
name = "tiny"
title = "made for a test"
layout = "timm"
provenance = ["random"]
licence = { package = "none", weights = "none" }
source = { kind = "hub", repo = "some/tiny", size_mb = 3 }
tensors = { format = "safetensors", path = "model.safetensors" }
sizes = { depth = 1, d_model = 8, n_heads = 2, d_ff = 32, patch_size = 4, layer_scale = false }
"""


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsCard:
    """A registered card, in a folder of its own."""
    path = tmp_path / "cards" / "tiny.toml"
    path.parent.mkdir()
    path.write_text(CARD)
    made = load_weights_card(path)
    assert WEIGHTS.names()  # they are looked for on first use
    monkeypatch.setitem(WEIGHTS._entries, "tiny", Entry("tiny", lambda: made, "a test", made))
    monkeypatch.setitem(WEIGHTS._values, "tiny", made)
    return made


def lock_of(card: WeightsCard) -> Path:
    return card.folder / "locks" / "tiny.json"


def test_the_first_download_locks_what_it_brought(hub: Hub, card: WeightsCard) -> None:
    assert weights_state(card) == "unverified"
    assert find_weights("tiny") is card
    fetch_weights(card)
    now = find_weights("tiny")
    path = weights_path(now)
    assert path.read_bytes() == hub.content
    assert json.loads(lock_of(card).read_text()) == {
        "schema": 1,
        "repo": "some/tiny",
        "revision": REVISION,
        "path": FILE,
        "sha256": sha256_of(path),
    }
    assert weights_state(now) == "available"
    assert now.source_text == "some/tiny at 0123456789ab (hub)"
    assert now.provenance[0] == "random"
    assert f"at {REVISION}: {FILE}, sha256 {sha256_of(path)}" in now.provenance[1]
    assert hub.downloads == [REVISION]


def test_another_machine_brings_exactly_what_is_locked(
    hub: Hub, card: WeightsCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_weights(card)
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "other"))
    hub.revision = "f" * 40
    now = find_weights("tiny")
    assert weights_state(now) == "needs download"
    with pytest.raises(
        DataError, match=r"some/tiny at 0123.* not here; run `frugalbench fetch tiny`"
    ):
        weights_path(now)
    fetch_weights(card)  # as a process that had read the card before it was locked
    fetch_weights(now)
    assert hub.downloads == [REVISION, REVISION]
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path / "third"))
    hub.content = save({"other": torch.zeros(1)})
    with pytest.raises(DataError, match=r"has sha256 .*, the lock says .*; nothing was kept"):
        fetch_weights(now)
    assert weights_state(now) == "needs download"


def test_an_altered_file_is_refused_and_fetch_replaces_it(hub: Hub, card: WeightsCard) -> None:
    fetch_weights(card)
    now = find_weights("tiny")
    path = weights_path(now)
    path.write_bytes(hub.content[:-4])
    with pytest.raises(
        DataError, match=r"was altered: .* the lock says .*`frugalbench fetch tiny`"
    ):
        pretrained_state("tiny")
    fetch_weights(now)
    assert weights_path(now).read_bytes() == hub.content


def test_what_is_no_safetensors_file_gets_no_lock(hub: Hub, card: WeightsCard) -> None:
    hub.content = b"<html>Sign in</html>"
    with pytest.raises(DataError, match=r"is no safetensors file \(.*nothing was kept"):
        fetch_weights(card)
    assert not lock_of(card).exists()


def test_without_a_writable_checkout_the_lock_lies_in_the_cache(
    hub: Hub, card: WeightsCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.data.weights_hub.os.access", lambda *_: False)
    fetch_weights(card)
    assert not lock_of(card).exists()
    assert (tmp_path / "cache" / "weights" / "locks" / "tiny.json").is_file()
    assert weights_state(find_weights("tiny")) == "available"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("some/tiny", "some/other", r"is the lock of .* in some/other, but the card 'tiny' names"),
        (REVISION, "", r"tiny\.json: revision: .*; remove it and run `frugalbench fetch tiny`"),
    ],
)
def test_a_lock_of_another_file_or_a_damaged_one_is_told(
    hub: Hub, card: WeightsCard, old: str, new: str, message: str
) -> None:
    fetch_weights(card)
    lock_of(card).write_text(lock_of(card).read_text().replace(old, new))
    with pytest.raises(InvalidFileError, match=message):
        find_weights("tiny")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: EntryNotFoundError("no such file"), "the hub has no some/tiny"),
        (lambda: LocalEntryNotFoundError("not in the cache"), "HF_ENDPOINT name a mirror"),
        (
            lambda: RuntimeError("Name not known"),
            r"cannot be reached \(Name not known\)\. Go online",
        ),
    ],
)
def test_what_the_hub_refuses_is_one_message_that_says_what_to_do(
    hub: Hub, card: WeightsCard, make: Callable[[], Exception], said: str
) -> None:
    hub.error = make()
    with pytest.raises(DataError, match=f"weights 'tiny': .*{said}") as caught:
        fetch_weights(card)
    assert "frugalbench fetch tiny" in str(caught.value)
    assert weights_state(find_weights("tiny")) == "unverified"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('repo = "some/tiny"', f'repo = "some/tiny", revision = "{REVISION}"', "leave them out"),
        ('path = "model', 'path = "../model', "tensors.path: must be a relative path inside"),
        ('"some/tiny"', '"tiny"', r"source\.hub\.repo: String should match"),
        ('layout = "timm"', 'layout = "bert"', "layout 'bert' needs `vocabulary`"),
        (
            "sizes = { depth = 1, d_model = 8, n_heads = 2, d_ff = 32, patch_size = 4, layer_scale = false }",
            (
                "sizes = { depth = 1, d_model = 8, n_heads = 2, d_ff = 32, positions = 4 }\n"
                'vocabulary = { path = "vocab.txt", size = 3 }'
            ),
            "vocabulary.path: from the hub comes one file",
        ),
    ],
)
def test_a_wrong_card_is_named_with_its_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = CARD if "vocabulary.path" not in message else CARD.replace('"timm"', '"bert"')
    (tmp_path / "tiny.toml").write_text(text.replace(old, new))
    with pytest.raises(InvalidFileError, match=message):
        load_weights_card(tmp_path / "tiny.toml")


# --- what starts from them -------------------------------------------------------------------------


def test_a_model_of_as_many_classes_is_the_one_that_was_saved(hub: Hub, card: WeightsCard) -> None:
    fetch_weights(card)
    state = build_model(CONFIG, 0).state_dict()
    assert state.keys() == hub.state.keys()
    for name, tensor in hub.state.items():
        assert torch.equal(state[name], tensor), name


@pytest.mark.parametrize("n_classes", [CLASSES - 1, CLASSES + 1])
def test_a_model_of_other_classes_has_a_fresh_head(
    hub: Hub, card: WeightsCard, n_classes: int
) -> None:
    fetch_weights(card)
    config = replace(CONFIG, n_classes=n_classes)
    state = build_model(config, 0).state_dict()
    fresh = build_model(replace(config, pretrained=None), 0).state_dict()
    for name, tensor in state.items():
        other = fresh if name.startswith("head.") else hub.state
        assert torch.equal(tensor, other[name]), name


def test_half_a_head_is_named(hub: Hub) -> None:
    del hub.state["head.weight"]
    with pytest.raises(ValueError, match=r"the weights have no head\.weight"):
        ViT(CONFIG).load_pretrained(hub.state)


def test_a_file_of_another_size_than_the_card_says_is_named(hub: Hub, card: WeightsCard) -> None:
    hub.content = save(hub.state | {"norm.weight": torch.zeros(9)})
    fetch_weights(card)
    with pytest.raises(
        UsageError, match=r"pretrained = 'tiny': norm\.weight is \(9,\) in the weights"
    ):
        build_model(CONFIG, 0)


def test_the_key_of_a_trained_model_holds_the_checksum(
    hub: Hub, card: WeightsCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"d_model": 8, "depth": 1, "n_heads": 2, "pretrained": "tiny"}
    point = Point(model="vit", params=params, dataset="digits", max_length=8)
    before = artifact_key(point)
    fetch_weights(card)
    locked = artifact_key(point)
    lock = lock_of(card)
    lock.write_text(
        lock.read_text().replace(sha256_of(weights_path(find_weights("tiny"))), "0" * 64)
    )
    assert len({before, locked, artifact_key(point)}) == 3


def test_fetch_list_and_validate_say_how_they_stand(
    hub: Hub, card: WeightsCard, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed() -> str:
        assert app.run(["list", "weights", "--json"]) == 0
        rows = {row["name"]: row["available"] for row in json.loads(capsys.readouterr().out)}
        return str(rows["tiny"])

    assert listed() == "unverified; run `frugalbench fetch tiny`"
    assert app.run(["fetch", "tiny"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "tiny: fetching some/tiny (hub) …"
    assert said[1].startswith("tiny: locked at some/tiny at 0123456789ab (hub); its lock: ")
    assert said[1].endswith("tiny.json")
    assert said[2:] == ["tiny: here and intact"]
    assert listed() == "here"
    assert app.run(["fetch", "tiny"]) == 0
    assert capsys.readouterr().out == "tiny: here and intact\n"
    lock_of(card).write_text("{}")
    assert app.run(["validate"]) == 2
    assert "tiny.json: repo: Field required" in capsys.readouterr().out


# --- the committed cards ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEIT)
def test_the_deit_cards_fit_the_shapes_that_they_name(name: str) -> None:
    card = WEIGHTS.get(name)
    assert holders(card) == (card,)
    sizes = card.sizes
    config = ViTConfig(
        depth=sizes.depth,
        d_model=sizes.d_model,
        n_heads=sizes.n_heads,
        patch_size=sizes.patch_size or 0,
        max_length=224,
        n_classes=1000,
    )
    assert (config.width_of_head, config.width_of_ffn) == (64, sizes.d_ff)
    with torch.device("meta"):
        megabytes = 4e-6 * ViT(config).n_parameters()
    assert card.download_mb == pytest.approx(megabytes, abs=0.1)


@pytest.mark.parametrize("name", DEIT)
def test_offline_the_real_client_says_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if WEIGHTS.get(name) != find_weights(name):
        pytest.skip(f"{name} is locked by now")
    monkeypatch.setenv("FRUGALBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert app.run(["fetch", name]) == 2
    out, err = capsys.readouterr()
    assert out == f"{name}: fetching timm/{name.replace('-', '_')}_patch16_224.fb_in1k (hub) …\n"
    assert "Go online (and unset HF_HUB_OFFLINE), then run" in err
    assert "Traceback" not in err
