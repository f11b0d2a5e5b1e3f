"""Caps of brokers and broker sets: on the indexes of a cluster, checked, and as rack trees."""
