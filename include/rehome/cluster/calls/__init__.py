"""Calls that take more than one request."""
