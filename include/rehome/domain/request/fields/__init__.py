"""Fields of parameters: their types, the choices they offer, and those that several DAGs have."""
