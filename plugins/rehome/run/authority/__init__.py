"""What a run may go by: what the ledger has written down of it."""
