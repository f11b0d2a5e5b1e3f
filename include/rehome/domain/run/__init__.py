"""A plan that runs, as data: states, bounds, what is observed, how far it is."""
