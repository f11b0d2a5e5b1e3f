"""What is known of a cluster."""
