"""How sparse attention is: measures of its weights, without knowledge of points or records."""
