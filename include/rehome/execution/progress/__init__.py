"""How far a plan is, and how long it still takes."""
