"""Tasks that ask a person."""
