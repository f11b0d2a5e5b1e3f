"""Figures about the code itself."""
