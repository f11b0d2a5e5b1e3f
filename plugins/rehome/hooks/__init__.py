"""How tasks reach clusters, the ledger and the warehouse."""
