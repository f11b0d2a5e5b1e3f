"""What runs do without: each extra plugs into a port of the core."""
