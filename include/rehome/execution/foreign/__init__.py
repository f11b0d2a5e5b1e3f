"""Reassignments of any client: described; where a person asks for it, cancelled or adopted."""
