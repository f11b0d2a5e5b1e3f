"""Where Spark runs: what its connection says, and what follows from that."""
