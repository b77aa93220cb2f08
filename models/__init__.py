"""Full model implementations, one readable file per model. Imports nothing by itself."""
