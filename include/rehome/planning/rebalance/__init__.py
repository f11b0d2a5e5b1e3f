"""The rebalance: what brokers hold comes within tolerance of their shares."""
