"""The run that a task belongs to: its parameters, its plan, its request, what was approved."""
