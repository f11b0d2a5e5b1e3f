"""Rows of the ledger about single runs."""
