"""Words for what a dry run finds."""
