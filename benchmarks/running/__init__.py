"""Engines, worker processes, and the records they leave."""
