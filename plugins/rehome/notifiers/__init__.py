"""Who is notified how a run ended."""
