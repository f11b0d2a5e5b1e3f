"""Sentences about a plan, a module for each topic."""
