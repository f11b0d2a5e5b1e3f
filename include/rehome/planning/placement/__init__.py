"""Placement: which brokers hold a partition, by racks, KIP-879 rings and disk space."""
