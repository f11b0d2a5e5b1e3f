"""What an expansion asks of the brokers that are not new."""
