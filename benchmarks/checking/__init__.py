"""Claims, regressions against the committed reference, and accepting a new one."""
