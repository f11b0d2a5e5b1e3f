"""What is measured of Rehome itself: one catalogue, and the values that it is given."""
