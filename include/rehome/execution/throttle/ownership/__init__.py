"""Whose a throttle is: marks on the cluster, and what a ledger has lost."""
