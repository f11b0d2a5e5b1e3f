"""Words for what policies refuse."""
