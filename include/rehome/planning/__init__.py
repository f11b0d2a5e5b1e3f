"""Planning: from a request and a snapshot to a plan with proof. Pure: no I/O."""
