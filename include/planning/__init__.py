"""What should be: requests, placement over the rack tree, plans with proof. Pure: no I/O."""
