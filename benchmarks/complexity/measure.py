"""All measures of a data set's test inputs, and why a measure is missing where it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.complexity.bag_of_words import held_out_loss
from benchmarks.complexity.disagreement import disagreement
from benchmarks.complexity.negation import negations
from benchmarks.complexity.overlap import overlap
from benchmarks.complexity.rarity import Frequencies, rarity
from benchmarks.complexity.words import documents
from benchmarks.data.diagnostics.make import make
from benchmarks.data.generated import GeneratedTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.complexity.words import Document
    from benchmarks.data.load import TextData

UNITS = {
    "length": "tokens",
    "rarity": "nats",
    "negations": "count",
    "overlap": "fraction",
    "bag_of_words_loss": "nats",
    "disagreement": "ratings",
}
"""Names and units; those of a diagnostic's own difficulty are counts and stand beside them."""

NO_SKLEARN = "scikit-learn is not installed; the extra `yardsticks` brings it"


@dataclass
class Measures:
    """What was measured of each test input.

    Attributes:
        columns: (n,) values of each measure, in the order of the test split; NaN where an input
            has none.
        unmeasured: why, for each measure that is not among the columns.
    """

    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)


def measures(data: TextData, lengths: NDArray[np.int64]) -> Measures:
    """Measures every test input.

    Args:
        data: in the benchmark's own vocabulary.
        lengths: (n,) tokens of each test input as the model gets it.

    Raises:
        DataError: the data set is not here, or altered.
    """
    test = data.test()
    train_words, test_words = documents(data, data.train, test)
    found = Measures({"length": lengths.astype(np.float64)})
    if isinstance(data.card.source, GeneratedTask):
        own = make(data.card.name, data.card.source)["test"].difficulty
        found.columns |= {name: values.astype(np.float64) for name, values in own.items()}
    _of_words(found, data, train_words, test_words)
    try:
        found.columns["bag_of_words_loss"] = held_out_loss(
            train_words, data.train.labels, test_words, test.labels
        )
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        found.unmeasured["bag_of_words_loss"] = NO_SKLEARN
    spread = disagreement(data.card, test.row_ids)
    if spread is None:
        found.unmeasured["disagreement"] = "the data set holds no ratings of single annotators"
    else:
        found.columns["disagreement"] = spread
    return found


def _of_words(
    found: Measures, data: TextData, training: list[Document], test: list[Document]
) -> None:
    if data.card.is_generated:
        reason = "generated tokens are no words"
        found.unmeasured |= dict.fromkeys(("rarity", "negations", "overlap"), reason)
        return
    frequencies = Frequencies(training)
    found.columns["rarity"] = np.array([rarity(d, frequencies) for d in test])
    found.columns["negations"] = np.array([negations(d) for d in test], np.float64)
    if data.card.task == "pair":
        found.columns["overlap"] = np.array([overlap(d) for d in test])
    else:
        found.unmeasured["overlap"] = "inputs are single texts"
