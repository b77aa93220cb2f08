"""One recipe for all compared models, the loop that runs it, and the artifacts it leaves."""
