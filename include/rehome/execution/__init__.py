"""Execution of a plan: pure decisions, and thin shells that carry them out."""
