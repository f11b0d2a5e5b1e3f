"""The two Kafka clients behind the gateway, bounded in time."""
