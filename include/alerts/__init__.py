"""What people are told of, whatever way: its kinds, its words, and who is told."""
