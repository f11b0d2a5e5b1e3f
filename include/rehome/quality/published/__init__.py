"""Publish gate results as a Great Expectations project and as Data Docs."""
