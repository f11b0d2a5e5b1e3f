"""DAGs that are made for each cluster: snapshots, sweeps, windows."""
