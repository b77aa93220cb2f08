"""The yardsticks on the cards: what a bag of words reaches on the same rows.

`python -m benchmarks.yardstick r8` prints the figure that the card of `r8` quotes. It needs
scikit-learn (extra `yardsticks`), as does the bag-of-words loss of the meter `complexity`.
"""

from __future__ import annotations

import argparse

from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import data_path
from benchmarks.data.readers import read_rows
from benchmarks.data.splits import splits_of


def tfidf_accuracy(card: Card, ngrams: int) -> tuple[float, int, int]:
    """Test accuracy of TF-IDF (min_df 2, sublinear, 60k features) + logistic regression (C = 5).

    Trained on the train and validation splits together: nothing is tuned here, so no split has to
    be kept for that.

    Args:
        card: of a packaged data set; a pair's two texts are joined by a space.
        ngrams: longest word n-gram.

    Returns:
        Accuracy, training rows, test rows.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows = read_rows(card, data_path(card))
    splits = splits_of(card, rows)
    train = [*splits.train, *splits.validation]
    test = splits.test
    texts = [" ".join(parts) for parts in rows.texts]
    model = make_pipeline(
        TfidfVectorizer(min_df=2, sublinear_tf=True, max_features=60_000, ngram_range=(1, ngrams)),
        LogisticRegression(C=5, max_iter=2000),
    )
    model.fit([texts[i] for i in train], [rows.labels[i] for i in train])
    score = model.score([texts[i] for i in test], [rows.labels[i] for i in test])
    return float(score), len(train), len(test)


def main() -> None:
    """Prints the yardsticks of the data sets named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    for name in parser.parse_args().datasets:
        for ngrams in (1, 2):
            accuracy, n_train, n_test = tfidf_accuracy(find_card(name), ngrams)
            print(  # noqa: T201 - it is what this script is for
                f"{name}: 1 to {ngrams} words: accuracy {accuracy:.4f} on {n_test} test rows, "
                f"trained on {n_train}"
            )


if __name__ == "__main__":
    main()
