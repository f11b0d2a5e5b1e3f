"""Linear and integer programs: which replicas leave, and where they go."""
