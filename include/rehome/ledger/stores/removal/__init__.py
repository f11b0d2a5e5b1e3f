"""What removes rows that are old."""
