"""Preferred leaders: the order of replicas. Nothing is copied."""
