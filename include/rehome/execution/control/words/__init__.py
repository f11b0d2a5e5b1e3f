"""What is answered and refused of a plan, in words: a module for each topic."""
