"""How surprised a bag-of-words model is by an input's class; it needs scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.complexity.words import Document, Words

LEAST_PROBABILITY = 1e-6
"""Least that counts: a loss of 13.8 nats, not an infinite one."""


def held_out_loss(
    training: Sequence[Document],
    training_labels: NDArray[np.int64],
    documents: Sequence[Document],
    labels: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Loss on inputs that the model was not trained on.

    The model is that of the cards' yardsticks: TF-IDF over words (in at least two inputs, sublinear,
    60,000 features) and logistic regression with C = 5; a pair is one bag. Test inputs take no part in
    its training, so the loss is out of sample without any folds.

    Args:
        training: inputs to learn from, some of every class.
        training_labels: (n,) their classes.
        documents: inputs to judge.
        labels: (m,) their classes.

    Returns:
        (m,) -log of the probability of the right class, in nats.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(analyzer=_bag, min_df=2, sublinear_tf=True, max_features=60_000),
        LogisticRegression(C=5, max_iter=2000),
    )
    model.fit(training, training_labels)
    return _loss(model.predict_proba(documents), model.classes_, labels)


def _bag(document: Document) -> Words:
    return [word for words in document for word in words]


def _loss(
    probabilities: NDArray[Any], classes: NDArray[Any], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    column = {int(label): place for place, label in enumerate(classes)}
    right = probabilities[np.arange(len(labels)), [column[int(label)] for label in labels]]
    loss: NDArray[np.float64] = -np.log(np.maximum(right, LEAST_PROBABILITY))
    return loss
