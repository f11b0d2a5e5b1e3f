"""Validate-only: everything that could refuse or spoil a plan is asked before anything changes."""
