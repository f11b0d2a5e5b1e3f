"""A cluster in memory under a plan: what `decide` does at any size, without brokers."""
