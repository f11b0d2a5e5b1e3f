"""The throttle of a plan before it runs: what holds by now, and what `auto` makes of it."""
