"""When maintenance windows are open."""
