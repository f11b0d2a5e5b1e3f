"""Judges a run by the world's truth. Shares no code with what it judges."""
