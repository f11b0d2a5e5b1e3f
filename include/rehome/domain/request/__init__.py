"""What an operator asks for, and how its parameters are read."""
