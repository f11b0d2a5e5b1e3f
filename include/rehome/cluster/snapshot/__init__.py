"""A snapshot: its tables, and how it is taken."""
