"""Feedback control of the throttle."""
