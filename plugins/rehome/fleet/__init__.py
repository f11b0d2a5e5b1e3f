"""The fleet: what the clusters file says of each cluster, its own DAGs, and its watching."""
