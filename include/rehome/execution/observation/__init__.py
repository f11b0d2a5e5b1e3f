"""What the cluster shows of a plan."""
