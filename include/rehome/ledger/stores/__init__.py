"""What the ledger keeps, each kind of row in a module of its own."""
