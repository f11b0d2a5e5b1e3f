"""Which moves start next."""
