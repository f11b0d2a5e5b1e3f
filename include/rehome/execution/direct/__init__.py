"""Calls that act on a cluster for people's own code: no plan, no ledger, no journal."""
