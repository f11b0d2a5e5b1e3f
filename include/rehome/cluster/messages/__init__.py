"""Kafka's admin messages: built from the model, read back into it. No I/O."""
