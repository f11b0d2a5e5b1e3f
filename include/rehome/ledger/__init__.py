"""What happened: plans, moves, throttles and events, journalled before the cluster is touched."""
