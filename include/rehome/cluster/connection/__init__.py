"""One connection's settings for both clients, and the check that names why it fails."""
