"""Watching: find problems of a cluster in its snapshots, and start remedies within rules."""
