"""What others see of a cluster: its port, errors, error codes and rights."""
