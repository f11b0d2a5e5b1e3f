"""One operator a step; each is parameters and order, include/ does the work."""
