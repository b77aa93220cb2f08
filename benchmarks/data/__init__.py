"""Cards, fetched packages, splits, vocabulary and batches."""
