"""What the ledger knows of a cluster, and of the connections that lead to it."""
