"""Plans that have paused, and what they wait for."""
