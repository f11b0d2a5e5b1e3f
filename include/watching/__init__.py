"""Watching: what is wrong with a cluster by its snapshots, and what may be done about it."""
