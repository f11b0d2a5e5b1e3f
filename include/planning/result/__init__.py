"""What a finished layout comes to: bounds, balance, links, notes, moves."""
