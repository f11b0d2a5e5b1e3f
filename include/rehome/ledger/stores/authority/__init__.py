"""Whose word counts: who has asked for a run, and which snapshot a run has taken."""
