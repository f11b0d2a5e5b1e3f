"""Planning of each action, except rebalance and expand."""
