"""Alerts: their kinds, their words, and the channels that they are sent through."""
