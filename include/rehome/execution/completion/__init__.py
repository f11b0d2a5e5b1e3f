"""After the last move: proof, preferred leaders, drained brokers."""
