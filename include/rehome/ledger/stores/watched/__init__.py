"""What the ledger keeps of watched clusters."""
