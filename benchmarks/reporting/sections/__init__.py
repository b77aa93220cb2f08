"""The report's sections, each a function from a view to Markdown."""
