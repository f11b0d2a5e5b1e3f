"""How much a search may do: optional parts, and a budget of work."""
