"""The steps after the last move: proof, leaders, drained brokers, report, verdict."""
