"""Modules that mix the tokens of a layer: attention and what can stand in for it."""
