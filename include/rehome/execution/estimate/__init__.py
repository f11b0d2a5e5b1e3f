"""How long a plan takes, before it starts and at every poll: one estimate for everybody."""
