"""Generators of the diagnostics: tasks whose need for attention and whose difficulty are known.

They lie outside the closures that make stored numbers stale (`benchmarks.planning.keys`): what they
make is pinned by `benchmarks.data.identity.GENERATORS`, which data hashes hold.
"""
