"""Processes of ours: they end with the one that started them."""
