"""Operators that keep the history, and remove what is old."""
