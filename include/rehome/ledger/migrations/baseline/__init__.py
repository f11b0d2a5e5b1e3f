"""Tables as the first migrations had made them, up to 0044: where a new ledger begins."""
