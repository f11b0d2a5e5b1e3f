"""Linear and mixed-integer programs: which replicas leave, and where they go."""
