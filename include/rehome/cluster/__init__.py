"""What Kafka is and says: the model, the gateway with every RPC, the snapshot."""
