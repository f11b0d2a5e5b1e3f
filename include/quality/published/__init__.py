"""What Great Expectations keeps of the gates: its project, its history, and its Data Docs."""
