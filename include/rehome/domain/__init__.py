"""What every part of Rehome speaks of. It imports nothing of Rehome but errors and settings."""
