"""Runs that other tasks have asked for."""
