"""The report's figures, one per file; each draws itself or says why it cannot."""
