"""How often an input negates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.complexity.words import Document, Words

NEGATORS = frozenset(
    {
        *("not", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor"),
        *("cannot", "without", "hardly", "scarcely", "barely"),
    }
)
CONTRACTED = frozenset(
    {
        *("ain", "aren", "can", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven"),
        *("isn", "mightn", "mustn", "needn", "shan", "shouldn", "wasn", "weren", "won", "wouldn"),
    }
)
"""What is left of a contracted "not" before its apostrophe; some sets have lost the apostrophe."""
JOINED = frozenset(f"{stem}t" for stem in CONTRACTED - {"can", "won"}) | {"n"}
"""The same without a gap ("didnt"), and what some tokenizers split off ("did n't")."""
APOSTROPHES = frozenset("'\u2019`")


def negations(document: Document) -> int:
    """Number of negators: single words, and contractions with "not" however they are written."""
    return sum(_in_text(words) for words in document)


def _in_text(words: Words) -> int:
    found = 0
    for at, word in enumerate(words):
        if word in NEGATORS:
            found += 1
        elif word in CONTRACTED or word == "n":
            after = at + 1 + (words[at + 1 : at + 2] != [] and words[at + 1] in APOSTROPHES)
            found += words[after : after + 1] == ["t"]
        elif word in JOINED:
            found += 1
    return found
