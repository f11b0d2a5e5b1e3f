"""How it gets there: pure decisions, and thin shells that carry them out."""
