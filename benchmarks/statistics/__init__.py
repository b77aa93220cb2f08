"""Intervals, and the committed simulation of their coverage."""
