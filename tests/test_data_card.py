"""Cards: what is accepted, and what a wrong one is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data.card import Card, load_card
from benchmarks.errors import InvalidFileError
from benchmarks.paths import resource_dir

PAPER_SETS = {"AG News", "CIFAR-10", "DBpedia-14", "IMDB", "SNLI", "Yelp"}
CARDS = sorted(resource_dir("datasets").glob("*.toml"))


def _changed(tmp_path: Path, old: str, new: str, name: str = "r8") -> Path:
    text = (resource_dir("datasets") / f"{name}.toml").read_text()
    assert old in text
    path = tmp_path / f"{name}.toml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_committed_cards_are_valid(path: Path) -> None:
    card = load_card(path)
    assert card.title
    assert card.licence.data
    assert (card.splits is None) == card.is_generated
    assert (card.counts is None) == (card.source.kind != "package")
    assert set(card.stand_in_for) <= PAPER_SETS


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('task = "single"', 'task = "triple"', "task"),
        ("[reader]", "[reader]\nquote = 1", "reader.quote"),
        ('sha256 = "9', 'sha256 = "X', "source.package.sha256"),
        ('train = "train"', 'train = "trian"', "splits.train: unknown part 'trian'"),
        ("validation = 0.1", "validation = 1.5", "splits.validation"),
        ("text = [1]", "text = [1, 2]", "reader.text"),
        ('"acq", ', '"earn", ', "classes: a class is named twice"),
        ("label = 0", "label = 0\nlabels = { x = 'eran' }", "did you mean 'earn'"),
        ("label = 0", "label = 0\nbins = [1.0]", "reader.bins and reader.score_range"),
        ('name = "r8"', 'name = "r9"', "the file says 'r8'"),
        ("[reader]", "[reader", "is not valid TOML"),
        ("[counts]", "[licence.counts]", "licence.counts"),
    ],
)
def test_a_wrong_card_is_told_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_card(_changed(tmp_path, old, new))
    assert "r8.toml: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "hub"', 'kind = "parquet"', "source.parquet.origin"),
        ('repo = "fancyzhx/ag_news"', 'repo = "ag_news"', "source.hub.repo"),
        ("data/train-", "../train-", "must be a relative path inside its folder"),
        ('"parquet"', '"tsv"', "'parquet' goes with sources on the hub"),
        ('text = ["text"]', "text = [0]", "columns of 'parquet' are names"),
        ('text = ["text"]', 'text = ["text", "more"]', "takes 1 column(s), not 2"),
        (
            "[splits]",
            "[counts]\ntrain = 1\nvalidation = 1\ntest = 1\ndropped = 0\n[splits]",
            "lock",
        ),
        ('train = "train"', 'train = "trian"', "splits.train: unknown part 'trian'"),
    ],
)
def test_a_wrong_hub_card_is_told_file_and_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_card(_changed(tmp_path, old, new, name="ag-news"))
    assert "ag-news.toml: " in str(caught.value)
    assert said in str(caught.value)


def test_no_pair_is_joined(tmp_path: Path) -> None:
    path = _changed(tmp_path, "drop_label", "join = true\ndrop_label", name="snli")
    with pytest.raises(InvalidFileError, match="stay apart"):
        load_card(path)


def test_a_hub_card_holds_nothing_that_was_not_read_off_a_file() -> None:
    for path in CARDS:
        card = load_card(path)
        if card.source.kind == "hub":
            assert card.counts is None
            assert card.n_rows("train") == 0
            assert "sha256" not in path.read_text()
            assert "revision" not in path.read_text()


def test_bins_must_rise_and_fit_the_classes(tmp_path: Path) -> None:
    for bins in ("[3.5, 2.0]", "[2.0]", "[2.0, 6.0]"):
        path = _changed(tmp_path, "bins = [2.0, 3.5]", f"bins = {bins}", name="sts-b")
        with pytest.raises(InvalidFileError, match=r"reader\.bins: 3 classes need 2 rising"):
            load_card(path)


def test_stand_ins_are_called_so() -> None:
    cards = {path.stem: load_card(path) for path in CARDS}
    assert cards["sts-b"].role == "stand-in for SNLI"
    assert cards["random-tokens"].role == ""
    assert cards["rotten-tomatoes"].partial
    assert cards["random-tokens"].source_text == "generated"
    assert cards["vader-movie"].role == "stand-in for Yelp"
    assert any("never train" in note for note in cards["vader-movie"].notes)


def test_yardsticks_name_their_method() -> None:
    found = {path.stem: [(y.name, y.value) for y in load_card(path).yardsticks] for path in CARDS}
    method = "min_df 2, sublinear, 60k features) + logistic regression C=5"
    assert found["r8"] == [(f"TF-IDF ({method}", 0.971)]
    # one- and two-grams: words alone reach 0.756
    assert found["rotten-tomatoes"] == [(f"TF-IDF (1- and 2-grams, {method}", 0.774)]


def test_cards_and_hashes_need_no_numpy() -> None:
    code = (
        "import sys\n"
        "from benchmarks.data.identity import data_hash\n"
        "from benchmarks.data.fetch import is_available\n"
        "data_hash('r8', max_length=64)\n"
        "heavy = {'numpy', 'torch', 'pandas', 'scipy', 'tokenizers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_schema_is_versioned() -> None:
    with pytest.raises(ValueError, match="schema"):
        Card.model_validate({"schema": 2})
