"""The account of a plan: what is known of it in one place, for everybody who shows it."""
