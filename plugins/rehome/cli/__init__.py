"""The command ``rehome``: one module for each of its commands."""
