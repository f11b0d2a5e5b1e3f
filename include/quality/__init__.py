"""Great Expectations suites that gate snapshots and plans."""
