"""Settings of each cluster: the clusters file."""
