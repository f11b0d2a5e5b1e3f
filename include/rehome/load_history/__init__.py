"""What partitions do to brokers over time: traffic, growth, and how sure of it we are."""
