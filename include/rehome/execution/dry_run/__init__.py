"""Dry run: checks everything that could refuse or spoil a plan, before anything changes."""
