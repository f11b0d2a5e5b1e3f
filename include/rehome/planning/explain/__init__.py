"""Explanations of a plan, from its files and its snapshot alone."""
