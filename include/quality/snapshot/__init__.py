"""What a snapshot must satisfy before anything is planned on it."""
