"""Waiting for a reassignment, and driving it."""
