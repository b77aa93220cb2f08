"""The yardsticks on the cards: what a bag of words, or a plain method on pixels, reaches on the same rows.

`python -m benchmarks.yardstick r8` prints the figure that the card of `r8` quotes. It needs
scikit-learn (extra `yardsticks`), as does the bag-of-words loss of the meter `complexity`.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.data.card import Card, find_card
from benchmarks.data.fetch import data_path
from benchmarks.data.image_data import load_card_images
from benchmarks.data.readers import read_rows
from benchmarks.data.splits import splits_of
from benchmarks.errors import DataError


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


def pixel_accuracy(card: Card, method: str, train_fraction: float) -> tuple[float, int, int]:
    """Test accuracy of a plain method on the pixels of an image set at its native size, over 255.

    Trained on the train and validation splits together, as for texts; below a fraction of 1 on that
    part of the training split alone.

    Args:
        card: of an image set of one size.
        method: "logistic regression" (C = 1) or "SVM" (RBF kernel, C = 10, gamma by scikit-learn's
            rule "scale").
        train_fraction: share of the training rows.

    Returns:
        Accuracy, training rows, test rows.

    Raises:
        DataError: the set is not here, or its images differ in size.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    if card.images is None or card.images.size is None:
        raise DataError(f"data set '{card.name}' has no native size")
    data = load_card_images(card, image_size=card.images.size, train_fraction=train_fraction)
    splits = [data.train, data.validation] if train_fraction == 1 else [data.train]
    pixels = np.concatenate([split.pixels.reshape(len(split), -1) for split in splits]) / 255
    labels = np.concatenate([split.labels for split in splits])
    test = data.test()
    model = SVC(C=10) if method == "SVM" else LogisticRegression(C=1, max_iter=2000)
    model.fit(pixels, labels)
    score = model.score(test.pixels.reshape(len(test), -1) / 255, test.labels)
    return float(score), len(labels), len(test)


def main() -> None:
    """Prints the yardsticks of the data sets named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--train-fraction", type=float, default=1.0, help="of images")
    chosen = parser.parse_args()
    for name in chosen.datasets:
        card = find_card(name)
        if card.is_image:
            methods = ["logistic regression"]
            if (
                card.channels == 1
            ):  # in colour, thousands of images already take the SVM many minutes
                methods.append("SVM")
            for method in methods:
                found = pixel_accuracy(card, method, chosen.train_fraction)
                _show(card, f"pixels, {method}", *found)
        else:
            for ngrams in (1, 2):
                _show(card, f"1 to {ngrams} words", *tfidf_accuracy(card, ngrams))


def _show(card: Card, method: str, accuracy: float, n_train: int, n_test: int) -> None:
    print(  # noqa: T201 - it is what this script is for
        f"{card.run_name}: {method}: accuracy {accuracy:.4f} on {n_test} test rows, trained on "
        f"{n_train}"
    )


if __name__ == "__main__":
    main()
