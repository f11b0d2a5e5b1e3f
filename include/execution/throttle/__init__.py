"""Throttles: set, checked and taken back, the journal first."""
