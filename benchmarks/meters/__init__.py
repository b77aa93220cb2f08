"""Meters: each measures one thing about one point, or about one pair of points."""
