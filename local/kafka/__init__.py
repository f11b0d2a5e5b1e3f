"""A real Kafka cluster on this machine, loopback only."""
