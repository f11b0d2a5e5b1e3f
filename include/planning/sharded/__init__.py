"""Plans of clusters too large for one process, made in shards."""
