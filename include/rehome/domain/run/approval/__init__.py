"""What is approved besides moves, and the questions that people answer."""
