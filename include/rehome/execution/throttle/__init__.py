"""Throttles: set, checked and taken back; the journal is written first."""
