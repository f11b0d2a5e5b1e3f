"""Reassignments of other clients: what may be asked of them."""
