"""`python -m benchmarks.data.commit_splits NAME...`: writes the row ids that a card's rule gives."""

from __future__ import annotations

import sys

from benchmarks.data.card import find_card
from benchmarks.data.fetch import data_path
from benchmarks.data.rows import read_any_rows
from benchmarks.data.splits import compute_splits, write_splits
from benchmarks.errors import FrugalbenchError


def main(names: list[str]) -> None:
    """Computes and writes the splits of the named cards, and prints what their counts must be.

    Of a mirror's set the counts are only printed, for its manifest.
    """
    for name in names:
        card = find_card(name)
        splits = compute_splits(card, read_any_rows(card, data_path(card)))
        if not card.computes_splits:
            write_splits(splits, card.splits_file)
        counts = {key: len(ids) for key, ids in vars(splits).items()}
        sys.stdout.write(f"{card.run_name}: {counts}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FrugalbenchError as error:
        sys.exit(str(error))
