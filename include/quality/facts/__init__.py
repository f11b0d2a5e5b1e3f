"""What the gate on a plan works out by itself, without the planner."""
