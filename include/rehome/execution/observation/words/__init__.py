"""Words for what is seen of a cluster."""
