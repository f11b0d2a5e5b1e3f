"""Results of a finished layout: moves, lower bounds, balance, links, notes."""
