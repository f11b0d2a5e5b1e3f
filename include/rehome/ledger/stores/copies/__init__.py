"""Bytes that the copies of moves have brought, as polls have read them."""
