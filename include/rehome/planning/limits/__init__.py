"""Caps and broker sets of a request: applied to a cluster, checked, and as rack trees."""
