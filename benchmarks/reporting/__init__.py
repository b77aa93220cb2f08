"""Markdown and SVG from records alone; needs no torch."""
