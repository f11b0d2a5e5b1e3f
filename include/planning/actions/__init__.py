"""What each action but the rebalance does."""
