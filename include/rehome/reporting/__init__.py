"""The report: one HTML file that anyone can open."""
