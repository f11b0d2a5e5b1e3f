"""Findings of watched clusters, as the ledger keeps them."""
