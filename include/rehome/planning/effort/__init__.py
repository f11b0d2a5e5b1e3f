"""How much a search may do: optional parts, numbers of its phases, and a budget of work."""
