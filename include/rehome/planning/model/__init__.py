"""A cluster as the planner computes on it: arrays, racks, disks, bands. Nothing is decided here."""
