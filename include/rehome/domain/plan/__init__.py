"""A plan as data: its moves, its summary, its files."""
