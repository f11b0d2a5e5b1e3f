"""Plans of clusters that are too large for one process, made in slices."""
