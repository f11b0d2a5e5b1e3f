"""Spark applications: argument parsing and Spark around include/."""
