"""What was asked of people, what they have answered, and what tasks have written."""
