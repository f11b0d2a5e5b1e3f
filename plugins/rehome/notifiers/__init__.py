"""Who is told how a run ended."""
