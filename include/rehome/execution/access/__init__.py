"""Who may act on which cluster: the cluster of a plan, its lease, the connection's policy."""
