"""Gates: Great Expectations suites that a snapshot, a history and a plan must pass."""
