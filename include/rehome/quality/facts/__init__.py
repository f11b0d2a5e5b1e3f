"""Facts for the gate on a plan, computed independently of the planner."""
